import { type Check, check, describeAnswer } from "../check.ts";
import { secretRefused } from "../expectations.ts";
import type { Answer } from "../parse-answer.ts";
import { create } from "../payloads.ts";
import type { Receiver } from "../receiver.ts";

const maxSecretLength = 1_000;

/** Secrets as they are written in the path. */
const invalidSecrets = [
  { name: "unknown", secret: "conformance-nobody" },
  { name: "empty", secret: "" },
  { name: "too-long", secret: "x".repeat(maxSecretLength) },
  { name: "undecodable", secret: "%E0%A4%A" },
  { name: "nul", secret: "%00" },
  { name: "slash", secret: "a%2Fb" },
  { name: "dots", secret: "%2E%2E" },
];

export const secretChecks: readonly Check[] = [
  ...invalidSecrets.map(({ name, secret }) =>
    check("spec", `secrets/${name}`, 'An invalid secret gets 403 {"message": "Invalid secret"}.', {
      request: create({ secret }),
      expect: secretRefused,
    }),
  ),
  {
    source: "spec",
    name: "secrets/nearly-right",
    demand: "The right secret with one more character, or one less, gets 403.",
    async run(receiver) {
      const { secret } = receiver;
      const nearlyRight = [`${secret}x`, secret.slice(0, -1)].map(encodeURIComponent);
      const trials = nearlyRight.map((each) => ({ request: create({ secret: each }), expect: secretRefused }));
      return check("spec", "", "", ...trials).run(receiver);
    },
  },
  {
    source: "ours",
    name: "secrets/same-bytes",
    demand: "403 has the same body, byte by byte, whatever is wrong with the secret, the body or the operation.",
    run: findDifferentRefusals,
  },
];

async function findDifferentRefusals(receiver: Receiver): Promise<string[]> {
  const answers: Answer[] = [];
  for (const { secret } of invalidSecrets) answers.push(await receiver.send({ secret, body: "{}" }));
  for (const operation of ["update", "delete"] as const) {
    answers.push(await receiver.send({ operation, secret: "conformance-nobody", type: "text/plain", body: "{" }));
  }
  const seen = new Set(answers.map((answer) => describeAnswer(answer, receiver.secret)));
  return seen.size === 1 && answers[0]?.status === 403 ? [] : [...seen];
}
