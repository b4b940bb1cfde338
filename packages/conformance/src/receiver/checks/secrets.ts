import { type Check, check, describeAnswer, runTrials, specified } from "../check.ts";
import type { Answer } from "../exchange.ts";
import { accepted, type Expectation, secretRefused } from "../expectations.ts";
import { create, forEach } from "../payloads.ts";
import type { Receiver } from "../receiver.ts";
import { type Request, secretPlaceholder } from "../request.ts";

const maxSecretLength = 1_000;

/** Secrets as they are written in the path. */
const invalidSecrets = [
  { name: "unknown", secret: "conformance-nobody" },
  { name: "empty", secret: "" },
  { name: "too-long", secret: "x".repeat(maxSecretLength) },
  { name: "percent-sign", secret: "%" },
  { name: "undecodable", secret: "%E0%A4%A" },
  { name: "nul", secret: "%00" },
  { name: "slash", secret: "a%2Fb" },
  { name: "dots", secret: "%2E%2E" },
];

export const secretChecks: readonly Check[] = [
  ...invalidSecrets.map(({ name, secret }) =>
    specified(
      check(`secrets/${name}`, 'An invalid secret gets 403 {"message": "Invalid secret"}.', {
        request: create({ secret }),
        expect: secretRefused,
      }),
    ),
  ),
  specified(
    withSecrets(
      "nearly-right",
      "The right secret with one more character, or one less, gets 403.",
      (right) => [`${right}x`, right.slice(0, -1)].map(encodeURIComponent),
      secretRefused,
    ),
  ),
  withSecrets(
    "altered",
    "The right secret gets 403 in another case, encoded twice, with a path around it, and as a query.",
    alter,
    secretRefused,
  ),
  withSecrets(
    "percent-encoded",
    "The right secret is accepted however much of it is percent-encoded.",
    (right) => [percentEncode(right)],
    accepted,
  ),
  check(
    "secrets/bearer",
    "The secret may be in the header Authorization, as Bearer, if the path has none.",
    ...forEach(["Bearer", "bearer"], (scheme) => withHeaders(`${scheme} ${secretPlaceholder}`), accepted),
  ),
  check(
    "secrets/bearer-refused",
    "A path without a secret gets 403 with a wrong one in the header, with another scheme, and without the header.",
    ...forEach(
      ["Bearer conformance-nobody", `Basic ${secretPlaceholder}`],
      (value) => withHeaders(value),
      secretRefused,
    ),
    { label: "none", request: withHeaders(), expect: secretRefused },
    {
      label: "two headers",
      request: withHeaders(`Bearer ${secretPlaceholder}`, `Bearer ${secretPlaceholder}`),
      expect: secretRefused,
    },
    {
      label: "in the path, too",
      request: create({ headers: [`Authorization: Bearer ${secretPlaceholder}`] }),
      expect: secretRefused,
    },
  ),
  {
    source: "ours",
    name: "secrets/same-bytes",
    demand: "403 has the same body, byte by byte, whatever is wrong with the secret, the body or the operation.",
    run: findDifferentRefusals,
  },
];

/** @param write returns secrets as they are written in the path */
function withSecrets(name: string, demand: string, write: (right: string) => string[], expect: Expectation): Check {
  const trials = (right: string) => write(right).map((secret) => ({ request: create({ secret }), expect }));
  return { source: "ours", name: `secrets/${name}`, demand, run: (it) => runTrials(trials(it.secret), it) };
}

function withHeaders(...authorization: string[]): (reference: string) => Request {
  const headers = authorization.map((value) => `Authorization: ${value}`);
  return create({ path: "/booking-event/create", headers });
}

function alter(secret: string): string[] {
  const written = encodeURIComponent(secret);
  const others = [secret.toUpperCase(), secret.toLowerCase()].filter((other) => other !== secret);
  return [
    ...others.map(encodeURIComponent),
    percentEncode(secret).replaceAll("%", "%25"),
    `${written}%2F`,
    `${written}%00`,
    `..%2F${written}`,
    `?${written}`,
  ];
}

function percentEncode(text: string): string {
  return Array.from(Buffer.from(text), (byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
}

async function findDifferentRefusals(receiver: Receiver): Promise<string[]> {
  const answers: Answer[] = [];
  for (const { secret } of invalidSecrets) answers.push(await receiver.send({ secret, body: "{}" }));
  for (const operation of ["update", "delete"] as const) {
    answers.push(await receiver.send({ operation, secret: "conformance-nobody", type: "text/plain", body: "{" }));
  }
  const seen = new Set(answers.map((answer) => describeAnswer(answer, receiver.secret)));
  return seen.size === 1 && answers[0]?.status === 403 ? [] : [...seen];
}
