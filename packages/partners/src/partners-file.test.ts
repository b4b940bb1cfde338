import { describe, expect, test } from "vitest";
import { defaultBytesPerDay, digestSecret, parsePartnersFile } from "./partners-file.ts";

const sha256 = digestSecret("a secret");
const secret = { id: "s1", sha256, createdAt: "2026-11-20T00:00:00Z", expiresAt: null };
const partner = {
  id: "acme",
  name: "Acme Travel",
  enabled: true,
  kinds: ["create", "update", "delete"],
  rateLimit: { perSecond: 200, burst: 400 },
  bytesPerDay: 1_000_000,
  held: false,
  test: false,
  secrets: [secret],
};

test("a digest is the hex of the secret's SHA-256", () => {
  expect(digestSecret("abc")).toBe("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
});

test("a valid file is parsed into its partners", () => {
  const file = { partners: [partner] };
  expect(parsePartnersFile(JSON.stringify(file))).toEqual({ success: true, file });
});

test("a partner without a quota has the default", () => {
  const { bytesPerDay: _, ...unlimited } = partner;
  const result = parsePartnersFile(JSON.stringify({ partners: [unlimited] }));
  expect(result).toMatchObject({ success: true, file: { partners: [{ bytesPerDay: defaultBytesPerDay }] } });
});

test("a partner is not on hold unless it says so", () => {
  const { held: _, ...silent } = partner;
  const result = parsePartnersFile(JSON.stringify({ partners: [silent] }));
  expect(result).toMatchObject({ success: true, file: { partners: [{ held: false }] } });
});

test("a partner's country is an ISO 3166-1 alpha-2 code", () => {
  const withCountry = (country: unknown) => parsePartnersFile(JSON.stringify({ partners: [{ ...partner, country }] }));
  expect(withCountry("GB")).toMatchObject({ success: true, file: { partners: [{ country: "GB" }] } });
  for (const country of ["gb", " GB", "GBR", "United Kingdom", "", null, 44])
    expect(withCountry(country)).toMatchObject({ success: false });
});

test("a byte order mark at the start is ignored, and a second one is not JSON", () => {
  const file = { partners: [partner] };
  expect(parsePartnersFile(`\ufeff${JSON.stringify(file)}`)).toEqual({ success: true, file });
  expect(parsePartnersFile(`\ufeff\ufeff${JSON.stringify(file)}`)).toEqual({
    success: false,
    problems: ["is not JSON"],
  });
});

test.each(["2026-12-01T00:00:00Z", "2026-12-01T00:00:00.123Z", "2028-02-29T23:59:59+02:00"])(
  "a secret may expire at %s",
  (expiresAt) => {
    const file = { partners: [{ ...partner, secrets: [{ ...secret, expiresAt }] }] };
    expect(parsePartnersFile(JSON.stringify(file))).toEqual({ success: true, file });
  },
);

test("a file in which an object has a name twice is invalid, since nobody knows which one was meant", () => {
  const text = JSON.stringify({ partners: [partner] }).replace('"enabled":', '"enabled":false,"enabled":');
  expect(parsePartnersFile(text)).toEqual({
    success: false,
    problems: [expect.stringMatching(/^has a name twice in one object, at line 1, column \d+$/)],
  });
});

describe("the problems of an invalid file name the place and the rule, but no value", () => {
  test.each<[name: string, file: unknown, problem: RegExp]>([
    ["not JSON", undefined, /is not JSON/],
    ["a list", [], /is not a JSON object/],
    ["no partners", {}, /partners is missing/],
    ["an unknown field", { partners: [{ ...partner, canary: 1 }] }, /partners\.0\.canary is not a known field/],
    ["a missing field", { partners: [{ ...partner, enabled: undefined }] }, /partners\.0\.enabled is missing/],
    ["a wrong type", { partners: [{ ...partner, enabled: "canary" }] }, /partners\.0\.enabled must be boolean/],
    ["a bad id", { partners: [{ ...partner, id: "Canary!" }] }, /partners\.0\.id must be 1 to 64/],
    [
      "a bad digest",
      { partners: [{ ...partner, secrets: [{ ...secret, sha256: "canary" }] }] },
      /secrets\.0\.sha256 must be the 64/,
    ],
    ...["2026-12-01T00:00:00+02", "2026-12-01", "2026-12-01T00:00:00", "2026-02-31T00:00:00Z", "canary"].map(
      (expiresAt): [string, unknown, RegExp] => [
        `an expiry of ${expiresAt}`,
        { partners: [{ ...partner, secrets: [{ ...secret, expiresAt }] }] },
        /secrets\.0\.expiresAt must be a date-time/,
      ],
    ),
    ["a bad kind", { partners: [{ ...partner, kinds: ["canary"] }] }, /partners\.0\.kinds\.0 must be/],
    ["no kind", { partners: [{ ...partner, kinds: [] }] }, /partners\.0\.kinds must name at least one/],
    ["two partners with one id", { partners: [partner, { ...partner, secrets: [] }] }, /two partners with the same id/],
    [
      "one secret of two partners",
      { partners: [partner, { ...partner, id: "other" }] },
      /the same secret more than once/,
    ],
    [
      "two secrets of a partner with one id",
      { partners: [{ ...partner, secrets: [secret, { ...secret, sha256: "0".repeat(64) }] }] },
      /a partner with two secrets of the same id/,
    ],
  ])("%s", (_, file, problem) => {
    const result = parsePartnersFile(file === undefined ? "canary" : JSON.stringify(file));
    const problems = result.success ? [] : result.problems;
    expect(problems.join("\n")).toMatch(problem);
    expect(problems.join("\n")).not.toMatch(/canary(?! is not)/i);
  });
});
