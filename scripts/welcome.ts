import { DEMO_PARTNER } from "./demo-partner.ts";
import { SetupProblem } from "./setup-problem.ts";

const DEMO_REFERENCE = "DEMO-1";
const demoBooking = {
  consumerTripPartnerExternalReference: DEMO_REFERENCE,
  consumerGivenName: "Ada",
  consumerPhone: "+442071838750",
  consumerTripDestinationName: "Lisbon",
  consumerTripArrivalDate: "2027-06-14",
  consumerTripReturnDate: "2027-06-21",
};

const TRY_TIMEOUT_MS = 10_000;

export interface Welcome {
  url: string;
  demo: { secret: string } | { absentBecause: string };
  partnersFile: string;
}

/** What is printed when everything is ready. Each command in it works when it is pasted as it stands. */
export function welcome({ url, demo, partnersFile }: Welcome, readyAfterMs: number): string {
  const lines = ["", `Ready after ${(readyAfterMs / 1000).toFixed(1)} s.`, "", `  URL      ${url}`];
  if ("secret" in demo) {
    lines.push(
      `  Partner  ${DEMO_PARTNER}`,
      `  Secret   ${demo.secret}`,
      "",
      "Send a booking, from another terminal:",
      "",
      `  ${curl(url, demo.secret)}`,
      "",
      "See what became of it, in this folder:",
      "",
      `  npm run -s ops -- bookings show ${DEMO_PARTNER} ${DEMO_REFERENCE}`,
    );
  } else {
    lines.push(
      `  Partners of ${partnersFile}`,
      "",
      `There is no demo partner: ${demo.absentBecause}.`,
      "List the partners: npm run -s ops -- partners list",
    );
  }
  lines.push("", "Logs are in .data/log, data in .data. Warnings and errors follow here. Ctrl-C stops everything.", "");
  return lines.join("\n");
}

/**
 * Sends the demo booking once as a dry run, so that "ready" is not a guess: the secret is accepted, and the payload.
 */
export async function tryDemoBooking(url: string, secret: string, stop: AbortSignal): Promise<void> {
  const signal = AbortSignal.any([stop, AbortSignal.timeout(TRY_TIMEOUT_MS)]);
  const response = await fetch(createUrl(url, secret), {
    method: "POST",
    headers: { "content-type": "application/json", "x-dry-run": "true" },
    body: JSON.stringify(demoBooking),
    signal,
  });
  const answer = await response.text();
  if (response.ok) return;
  throw new SetupProblem(
    `Everything is up, but a trial of the demo booking was answered ${response.status} ${answer}`,
    "The log may say why: .data/log/ingest.log",
  );
}

function curl(url: string, secret: string): string {
  const body = JSON.stringify(demoBooking);
  return `curl -sS -w '\\n' ${createUrl(url, secret)} -H 'Content-Type: application/json' -d '${body}'`;
}

function createUrl(url: string, secret: string): string {
  return `${url}/booking-event/create/${secret}`;
}
