import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ensureDemoPartner } from "./demo-partner.ts";

let dir: string;
let opsCalls: string[];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "demo-partner-"));
  opsCalls = [];
});

afterEach(() => {
  rmSync(dir, { recursive: true, force: true });
});

test("where there is no partners file, the demo partner is added and its secret kept for its owner only", async () => {
  expect(await ensure()).toEqual({ secret: "new-secret" });
  expect(opsCalls).toEqual(["partners add demo --name Demo partner --rate 100000 --json"]);
  expect(readFileSync(join(dir, "secret"), "utf8")).toBe("new-secret\n");
  expect(statSync(join(dir, "secret")).mode & 0o777).toBe(0o600);
});

test("a secret that is still valid is used again", async () => {
  writePartners([demo({ secret: "kept", expiresAt: null })]);
  writeFileSync(join(dir, "secret"), "kept\n");
  expect(await ensure()).toEqual({ secret: "kept" });
  expect(opsCalls).toEqual([]);
});

test("a byte order mark at the beginning of the partners file is ignored", async () => {
  writePartners([demo({ secret: "kept", expiresAt: null })]);
  const path = join(dir, "partners.json");
  writeFileSync(path, `\ufeff${readFileSync(path, "utf8")}`);
  writeFileSync(join(dir, "secret"), "kept\n");
  expect(await ensure()).toEqual({ secret: "kept" });
});

test.each([
  ["is lost", undefined, null],
  ["is not the one in the file", "other", null],
  ["has expired", "kept", "2020-01-01T00:00:00Z"],
])("a demo partner whose secret %s gets a new one", async (_how, secretKept, expiresAt) => {
  writePartners([demo({ secret: "kept", expiresAt })]);
  if (secretKept) writeFileSync(join(dir, "secret"), secretKept);
  expect(await ensure()).toEqual({ secret: "new-secret" });
  expect(opsCalls).toEqual(["partners rotate demo --json"]);
});

test("other partners of the local file stay beside the demo partner", async () => {
  writePartners([{ id: "acme", enabled: true, secrets: [] }]);
  await ensure();
  expect(opsCalls).toEqual(["partners add demo --name Demo partner --rate 100000 --json"]);
});

test("a partners file that the user named is left as it is", async () => {
  writePartners([]);
  expect(await ensure({ mayChange: false })).toHaveProperty("absentBecause");
  expect(opsCalls).toEqual([]);
  expect(existsSync(join(dir, "secret"))).toBe(false);
});

test("a partners file that the user named and that does not exist is created with the demo partner", async () => {
  expect(await ensure({ mayChange: false })).toEqual({ secret: "new-secret" });
});

test("a demo partner that was disabled stays so", async () => {
  writePartners([{ ...demo({ secret: "kept", expiresAt: null }), enabled: false }]);
  expect(await ensure()).toEqual({ absentBecause: expect.stringContaining("disabled") });
});

test("a file that is not a partners file is an error that says so", async () => {
  writeFileSync(join(dir, "partners.json"), "{");
  await expect(ensure()).rejects.toThrow(/partners\.json can't be read/);
});

function ensure({ mayChange = true } = {}) {
  return ensureDemoPartner({
    partnersFile: join(dir, "partners.json"),
    mayChange,
    secretFile: join(dir, "secret"),
    runOps: async (...args) => {
      opsCalls.push(args.join(" "));
      return JSON.stringify({ partner: "demo", secretId: "s1", secret: "new-secret" });
    },
  });
}

function demo({ secret, expiresAt }: { secret: string; expiresAt: string | null }) {
  const sha256 = createHash("sha256").update(secret).digest("hex");
  return { id: "demo", enabled: true, secrets: [{ id: "s0", sha256, expiresAt }] };
}

function writePartners(partners: object[]): void {
  writeFileSync(join(dir, "partners.json"), JSON.stringify({ partners }));
}
