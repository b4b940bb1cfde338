import { once } from "node:events";
import { request } from "node:http";
import { createInterface } from "node:readline";
import { fullBooking } from "./sample-events.ts";
import { IntegrityError } from "./scenario.ts";

const linesAtOnce = 50;

/**
 * Posts a batch of new bookings as fast as it is read, for as long as it is told to.
 *
 * @returns how many events were accepted a second
 * @throws IntegrityError when any line gets another status than 200
 */
export async function postBatch(url: string, durationMs: number): Promise<{ eventsPerSecond: number }> {
  const startedAtMs = performance.now();
  const sending = request(url, { method: "POST", headers: { "Content-Type": "application/x-ndjson" } });
  const sent = sendLines(sending, startedAtMs + durationMs);
  const [response] = await once(sending, "response");
  let answered = 0;
  for await (const line of createInterface({ input: response })) {
    if (!line.includes('"status":200')) throw new IntegrityError(`A line of the batch failed: ${line}`);
    answered += 1;
  }
  if (answered !== (await sent)) throw new IntegrityError(`${await sent} lines were sent, and ${answered} answered.`);
  return { eventsPerSecond: (answered / (performance.now() - startedAtMs)) * 1_000 };
}

async function sendLines(sending: ReturnType<typeof request>, endsAtMs: number): Promise<number> {
  let sent = 0;
  for (; performance.now() < endsAtMs; sent += linesAtOnce) {
    const lines = Array.from({ length: linesAtOnce }, (_, index) => toLine(sent + index)).join("");
    if (!sending.write(lines)) await once(sending, "drain");
  }
  sending.end();
  return sent;
}

function toLine(number: number): string {
  const payload = { ...fullBooking, consumerTripPartnerExternalReference: `TRIP-${number}` };
  return `${JSON.stringify({ kind: "create", payload })}\n`;
}
