import {
  createPartnerRegistry,
  digestSecret,
  type Partner,
  type PartnerRegistry,
  parsePartnersFile,
} from "@booking-events/partners";
import { answers, type EventKind } from "@booking-events/schema";
import { describe, expect, test } from "vitest";
import { Refusal } from "../answers/refusal.ts";
import { authenticate as authenticateWithAnswer, SecretRefused } from "./authenticate.ts";
import { secretOf } from "./secret-of.ts";

const expiresAt = "2026-11-20T12:00:00Z";
const expiresAtMs = Date.parse(expiresAt);
const day = 86_400_000;

const registry = createRegistry([
  partner("acme", { secrets: [secret("acme-old", expiresAt), secret("acme-new", null, "s2")] }),
  partner("zenith", { kinds: ["update", "delete"], secrets: [secret("zenith-secret")] }),
  partner("brief", { kinds: ["delete"], secrets: [secret("brief-secret", expiresAt)] }),
  partner("closed", { enabled: false, secrets: [secret("closed-secret")] }),
]);

describe("a secret", () => {
  test.each([
    ["acme-old", "acme"],
    ["acme-new", "acme"],
    ["zenith-secret", "zenith"],
  ])("%s belongs to %s", (given, id) => {
    expect(authenticate(registry, given, "update", expiresAtMs - 1).id).toBe(id);
  });

  test.each([
    ["unknown", "no-such-secret", undefined],
    ["empty", "", undefined],
    ["part of another", "acme-ne", undefined],
    ["in another case", "ACME-NEW", undefined],
    ["the digest of another", digestSecret("acme-new"), undefined],
    ["a member of Object.prototype", "__proto__", undefined],
    ["of a disabled partner", "closed-secret", "closed"],
    ["not for this kind", "zenith-secret", "zenith"],
  ])("that is %s is refused, and the log names the partner only if the secret is known", (_what, given, partnerId) => {
    const refusal = refusalOf(registry, given, expiresAtMs - 1);
    expect(refusal.answer).toBe(answers.invalidSecret);
    expect(refusal.partnerId).toBe(partnerId);
  });

  test("is valid until the millisecond before its expiry", () => {
    expect(authenticate(registry, "acme-old", "create", expiresAtMs - 1).id).toBe("acme");
    expect(refusalOf(registry, "acme-old", expiresAtMs).outcome).toBe("expired-secret");
  });

  test("never expires without an expiry", () => {
    expect(authenticate(registry, "acme-new", "create", Number.MAX_SAFE_INTEGER).id).toBe("acme");
  });
});

describe("the secret of a request", () => {
  const requestWith = (...authorization: string[]) => ({
    headers: authorization[0] === undefined ? {} : { authorization: authorization[0] },
    rawHeaders: authorization.flatMap((value) => ["Authorization", value]),
  });

  test.each([
    [["Bearer acme-new"], "", { secret: "acme-new" }],
    [["bearer   acme-new"], "", { secret: "acme-new" }],
    [["Basic acme-new"], "", { secret: "" }],
    [["acme-new"], "", { secret: "" }],
    [["Bearer acme new"], "", { secret: "" }],
    [[], "", { secret: "" }],
    [[], "in-path", { secret: "in-path" }],
    [["Basic of-a-proxy"], "in-path", { secret: "in-path" }],
    [["Bearer"], "in-path", { secret: "in-path" }],
    [["Bearer "], "", { secret: "" }],
    [["Bearer acme-new"], "in-path", { secret: "in-path", fault: "two-secrets" }],
    [["Bearer acme-new", "Bearer other"], "", { secret: "", fault: "two-secrets" }],
  ])("with Authorization %j and %j in the path is %j", (authorization, inPath, expected) => {
    expect(secretOf(requestWith(...authorization), inPath)).toEqual(expected);
  });

  test("is refused if there are two, although either is valid", () => {
    const given = secretOf(requestWith("Bearer acme-new"), "acme-new");
    const clock = { nowMs: 0, isClockWrong: () => false };
    expect(() => authenticateWithAnswer(registry, given, "create", clock, () => answers.invalidSecret)).toThrow(
      expect.objectContaining({ outcome: "two-secrets", partnerId: "acme" }),
    );
  });
});

test("with 10,000 partners each secret finds its partner, and other secrets are refused", () => {
  const ids = Array.from({ length: 10_000 }, (_, index) => `partner-${index}`);
  const many = createRegistry(ids.map((id) => partner(id, { secrets: [secret(`secret of ${id}`)] })));
  for (const id of ids) expect(authenticate(many, `secret of ${id}`, "create", 0).id).toBe(id);
  expect(refusalOf(many, "secret of partner-10000", 0).outcome).toBe("unknown-secret");
});

test("every refused secret is counted, whatever the cause, and valid ones are not", () => {
  let refused = 0;
  const answerRefused = () => {
    refused += 1;
    return answers.invalidSecret;
  };
  const given = ["no-such-secret", "closed-secret", "zenith-secret", "acme-old", "acme-new"];
  for (const value of given) {
    try {
      authenticateWithAnswer(
        registry,
        { secret: value },
        "create",
        { nowMs: expiresAtMs, isClockWrong: () => false },
        answerRefused,
      );
    } catch {}
  }
  expect(refused).toBe(4);
});

test("a registry knows its numbers of partners and secrets", () => {
  expect(registry).toMatchObject({ partnerCount: 4, secretCount: 5 });
});

describe("while this host's clock is known to be wrong", () => {
  const outcomeOf = (given: string, nowMs: number, kind: EventKind = "create") => {
    try {
      return authenticate(registry, given, kind, nowMs, true).id;
    } catch (error) {
      if (error instanceof Refusal) return [error.answer.status, error.outcome];
      throw error;
    }
  };

  test.each([
    ["has expired by it", expiresAtMs + 3 * day],
    ["is valid by it", expiresAtMs - 3 * day],
  ])("a secret that %s is neither refused for good nor accepted", (_what, nowMs) => {
    expect(outcomeOf("acme-old", nowMs)).toEqual([503, "clock-differs"]);
  });

  test("what no clock decides is decided", () => {
    expect(outcomeOf("acme-new", expiresAtMs)).toBe("acme");
    expect(outcomeOf("no-such-secret", expiresAtMs)).toEqual([403, "unknown-secret"]);
    expect(outcomeOf("closed-secret", expiresAtMs)).toEqual([403, "disabled-partner"]);
    expect(outcomeOf("brief-secret", expiresAtMs)).toEqual([403, "kind-not-allowed"]);
  });
});

function authenticate(
  partners: PartnerRegistry,
  given: string,
  kind: EventKind,
  nowMs: number,
  isWrong = false,
): Partner {
  const clock = { nowMs, isClockWrong: () => isWrong };
  return authenticateWithAnswer(partners, { secret: given }, kind, clock, () => answers.invalidSecret).partner;
}

function refusalOf(partners: PartnerRegistry, given: string, nowMs: number): SecretRefused {
  try {
    authenticate(partners, given, "create", nowMs);
  } catch (error) {
    if (error instanceof SecretRefused) return error;
    throw error;
  }
  throw new Error("The secret was accepted");
}

function createRegistry(partners: unknown[]): PartnerRegistry {
  const result = parsePartnersFile(JSON.stringify({ partners }));
  if (!result.success) throw new Error(result.problems.join());
  return createPartnerRegistry(result.file);
}

function partner(id: string, more: object): object {
  const rateLimit = { perSecond: 200, burst: 400 };
  return { id, name: id, enabled: true, kinds: ["create", "update", "delete"], rateLimit, ...more };
}

function secret(value: string, expires: string | null = null, id = "s1"): object {
  return { id, sha256: digestSecret(value), createdAt: "2026-01-01T00:00:00Z", expiresAt: expires };
}
