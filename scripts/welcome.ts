import { setTimeout as sleep } from "node:timers/promises";
import { DEMO_PARTNER } from "./demo-partner.ts";
import { untilAnswers } from "./local-server.ts";
import { SetupProblem } from "./setup-problem.ts";

const DEMO_REFERENCE = "DEMO-1";
const demoBooking = JSON.stringify({
  consumerTripPartnerExternalReference: DEMO_REFERENCE,
  consumerGivenName: "Ada",
  consumerPhone: "+442071838750",
  consumerTripDestinationName: "Lisbon",
  consumerTripArrivalDate: "2027-06-14",
  consumerTripReturnDate: "2027-06-21",
});

const ANSWER_TIMEOUT_MS = 10_000;
const TRY_TIMEOUT_MS = 30_000;
const RETRY_INTERVAL_MS = 500;

export interface Welcome {
  url: string;
  lookupUrl: string;
  console: { url: string; password: string };
  demo: { secret: string } | { absentBecause: string };
  partnersFile: string;
}

/** What is printed when everything is ready. The user can paste each command as it is. */
export function welcome({ url, lookupUrl, console, demo, partnersFile }: Welcome, readyAfterMs: number): string {
  const partner =
    "secret" in demo
      ? `  Partner  ${DEMO_PARTNER}
  Secret   ${demo.secret}

Send a booking, from another terminal:

  curl -sS -w '\\n' ${createUrl(url, demo.secret)} -H 'Content-Type: application/json' -d '${demoBooking}'

Ask what became of it, as the partner, by the eventId of the answer:

  curl -sS -w '\\n' ${lookupUrl}/booking-event/receipt/${demo.secret}/EVENT_ID

Or as the operator, in this folder:

  npm run -s ops -- bookings show ${DEMO_PARTNER} ${DEMO_REFERENCE}`
      : `  Partners of ${partnersFile}

There is no demo partner: ${demo.absentBecause}.
List the partners: npm run -s ops -- partners list`;
  return `
Ready after ${(readyAfterMs / 1000).toFixed(1)} s.

  Console  ${console.url}
  Password ${console.password}

  URL      ${url}
  Docs     ${url}/docs
${partner}

Logs are in .data/log, data in .data. Warnings and errors follow here. Ctrl-C stops everything.
`;
}

/**
 * Sends the demo booking as a dry run. It proves that ingest accepts the secret and the payload. A 503 is tried again:
 * a busy machine makes a process that has just started slow.
 */
export async function tryDemoBooking(url: string, secret: string, stop: AbortSignal): Promise<void> {
  const tooLate = (lastFailure: unknown) => notAccepted(String(lastFailure));
  await untilAnswers(() => tryOnce(url, secret, stop), { timeoutMs: TRY_TIMEOUT_MS, tooLate, signal: stop });
}

async function tryOnce(url: string, secret: string, stop: AbortSignal): Promise<void> {
  const response = await fetch(createUrl(url, secret), {
    method: "POST",
    headers: { "content-type": "application/json", "x-dry-run": "true" },
    body: demoBooking,
    signal: AbortSignal.any([stop, AbortSignal.timeout(ANSWER_TIMEOUT_MS)]),
  });
  const answer = await response.text();
  if (response.ok) return;
  const refusal = `${response.status} ${answer}`;
  if (response.status !== 503) throw notAccepted(refusal);
  await sleep(RETRY_INTERVAL_MS);
  throw new Error(refusal);
}

function notAccepted(reason: string): SetupProblem {
  return new SetupProblem(
    `Everything runs, but a dry run of the demo booking was not accepted: ${reason}`,
    "The log may say why: .data/log/ingest.log",
  );
}

function createUrl(url: string, secret: string): string {
  return `${url}/booking-event/create/${secret}`;
}
