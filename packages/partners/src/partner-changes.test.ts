import { describe, expect, test } from "vitest";
import { addPartner, isRevoked, isValid, revokeSecret, rotateSecret, setAdmission } from "./partner-changes.ts";
import { digestSecret, type Partner, type PartnersFile, parsePartnersFile } from "./partners-file.ts";

const now = new Date("2026-11-20T12:00:00Z");
const hourMs = 3_600_000;
const empty: PartnersFile = { partners: [] };
const acme = {
  id: "acme",
  name: "Acme Travel",
  kinds: ["create" as const],
  rateLimit: { perSecond: 200, burst: 400 },
  bytesPerDay: 1_000,
  expiresAt: null,
};

function fileWith(...secrets: { id: string; expiresAt: string | null }[]): PartnersFile {
  const partner: Partner = {
    id: "acme",
    name: "Acme Travel",
    enabled: true,
    kinds: ["create"],
    rateLimit: { perSecond: 200, burst: 400 },
    bytesPerDay: 1_000,
    held: false,
    test: false,
    secrets: secrets.map((secret) => ({
      ...secret,
      sha256: digestSecret(secret.id),
      createdAt: "2026-01-01T00:00:00Z",
    })),
  };
  const other: Partner = { ...partner, id: "other", secrets: [] };
  return { partners: [other, partner] };
}

function expiries(file: PartnersFile): string[] {
  const partner = file.partners.find(({ id }) => id === "acme");
  return (partner?.secrets ?? []).map(({ id, expiresAt }) => `${id} ${expiresAt}`);
}

describe("a new partner", () => {
  test("has a URL-safe secret of 256 random bits, and the file contains only its digest", () => {
    const { file, added } = addPartner(empty, acme, now);
    expect(added.secret).toMatch(/^[A-Za-z0-9_-]{43}$/);
    expect(Buffer.from(added.secret, "base64url")).toHaveLength(32);
    expect(encodeURIComponent(added.secret)).toBe(added.secret);
    expect(file.partners[0]?.secrets).toEqual([
      { id: "s1", sha256: digestSecret(added.secret), createdAt: now.toISOString(), expiresAt: null },
    ]);
    expect(JSON.stringify(file)).not.toContain(added.secret);
    expect(parsePartnersFile(JSON.stringify(file)).success).toBe(true);
  });

  test("gets a unique secret", () => {
    const secrets = Array.from({ length: 1_000 }, () => addPartner(empty, acme, now).added.secret);
    expect(new Set(secrets).size).toBe(1_000);
    // Each character is one of 64, and the last one carries 4 bits. A generator with fewer bits would fail here.
    for (let place = 0; place < 42; place += 1) {
      expect(new Set(secrets.map((secret) => secret[place])).size).toBeGreaterThan(55);
    }
  });

  test("may have a secret that expires", () => {
    const { file } = addPartner(empty, { ...acme, expiresAt: new Date("2027-01-01T00:00:00Z") }, now);
    expect(expiries(file)).toEqual(["s1 2027-01-01T00:00:00.000Z"]);
  });

  test("is refused if the id is taken", () => {
    expect(() => addPartner(fileWith(), acme, now)).toThrow(/Partner acme already exists/);
  });
});

describe("rotation", () => {
  test("keeps valid secrets until the end of the overlap, and never beyond their expiry", () => {
    const before = fileWith(
      { id: "s1", expiresAt: "2026-11-19T00:00:00Z" },
      { id: "s2", expiresAt: null },
      { id: "s3", expiresAt: "2026-11-20T12:30:00Z" },
      { id: "s5", expiresAt: "2027-11-20T12:00:00Z" },
    );
    const { file, added, previousSecretsExpireAt } = rotateSecret(before, { id: "acme", overlapMs: hourMs }, now);
    expect(expiries(file)).toEqual([
      "s1 2026-11-19T00:00:00Z",
      "s2 2026-11-20T13:00:00.000Z",
      "s3 2026-11-20T12:30:00Z",
      "s5 2026-11-20T13:00:00.000Z",
      "s6 null",
    ]);
    expect(added.secretId).toBe("s6");
    expect(file.partners[1]?.secrets.at(-1)?.sha256).toBe(digestSecret(added.secret));
    expect(previousSecretsExpireAt).toEqual(new Date("2026-11-20T13:00:00Z"));
    expect(file.partners[0]).toBe(before.partners[0]);
  });

  test("reports the expiry of a secret that expires before the end of the overlap", () => {
    const before = fileWith({ id: "s1", expiresAt: "2026-11-20T12:30:00Z" });
    expect(rotateSecret(before, { id: "acme", overlapMs: hourMs }, now).previousSecretsExpireAt).toEqual(
      new Date("2026-11-20T12:30:00Z"),
    );
  });

  test("without an overlap expires the old secret immediately", () => {
    const { file } = rotateSecret(fileWith({ id: "s1", expiresAt: null }), { id: "acme", overlapMs: 0 }, now);
    expect(file.partners[1]?.secrets.map((secret) => isValid(secret, now))).toEqual([false, true]);
  });

  test("does not revive a secret whose expiry is invalid", () => {
    const before = fileWith({ id: "s1", expiresAt: "unreadable" });
    const { file, previousSecretsExpireAt } = rotateSecret(before, { id: "acme", overlapMs: hourMs }, now);
    expect(expiries(file)).toEqual(["s1 unreadable", "s2 null"]);
    expect(previousSecretsExpireAt).toBeNull();
  });

  test("of a partner without a valid secret reports no previous secrets", () => {
    const before = fileWith({ id: "old", expiresAt: "2026-11-19T00:00:00Z" });
    const { added, previousSecretsExpireAt } = rotateSecret(before, { id: "acme", overlapMs: hourMs }, now);
    expect(previousSecretsExpireAt).toBeNull();
    expect(added.secretId).toBe("s1");
  });
});

describe("revocation", () => {
  const before = fileWith({ id: "s1", expiresAt: "2026-11-19T00:00:00Z" }, { id: "s2", expiresAt: null });

  test("refuses the secret, and keeps its record, which differs from that of an expired one", () => {
    const { file, wasValid, hasValidSecret } = revokeSecret(before, { id: "acme", secretId: "s2" }, now);
    expect(file.partners[1]?.secrets.map((secret) => [isValid(secret, now), isRevoked(secret)])).toEqual([
      [false, false],
      [false, true],
    ]);
    expect({ wasValid, hasValidSecret }).toEqual({ wasValid: true, hasValidSecret: false });
  });

  test("refuses a secret whose creation is in the future, too", () => {
    const { file } = revokeSecret(before, { id: "acme", secretId: "s2" }, new Date("2025-01-01T00:00:00Z"));
    expect(expiries(file)[1]).toBe("s2 2025-01-01T00:00:00.000Z");
  });

  test("does not change the expiry of an expired secret", () => {
    const { file, wasValid, hasValidSecret } = revokeSecret(before, { id: "acme", secretId: "s1" }, now);
    expect(expiries(file)).toEqual(expiries(before));
    expect({ wasValid, hasValidSecret }).toEqual({ wasValid: false, hasValidSecret: true });
  });

  test("lists the partner's secrets if none has that id", () => {
    expect(() => revokeSecret(before, { id: "acme", secretId: "s9" }, now)).toThrow(/no secret s9.*s1, s2/);
  });
});

test("a partner can be disabled and enabled; without a change the file stays the same", () => {
  const before = fileWith();
  const disabled = setAdmission(before, "acme", { enabled: false });
  expect(disabled.partners.map(({ id, enabled }) => [id, enabled])).toEqual([
    ["other", true],
    ["acme", false],
  ]);
  expect(setAdmission(disabled, "acme", { enabled: false })).toBe(disabled);
});

test("changing an unknown partner is refused", () => {
  expect(() => rotateSecret(empty, { id: "acme", overlapMs: 0 }, now)).toThrow(/Partner acme does not exist/);
  expect(() => revokeSecret(empty, { id: "acme", secretId: "s1" }, now)).toThrow(/Partner acme does not exist/);
  expect(() => setAdmission(empty, "acme", { enabled: true })).toThrow(/Partner acme does not exist/);
});
