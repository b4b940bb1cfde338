/** A program that follows the feed and posts one change after the other, as a developer would write it first. */
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { follow } from "@booking-events/feed";
import { answerReady } from "./serve.ts";

const url = process.env["SUBSCRIBER_URL"] ?? "";
const key = Buffer.alloc(32, 1);
const agent = new Agent({ keepAlive: true });
const stopping = new AbortController();
process.once("SIGTERM", () => stopping.abort());

answerReady();
await follow({
  name: "one-by-one",
  database: process.env["DATABASE_URL"] ?? "",
  signal: stopping.signal,
  async onChange({ id, bookingId, partner, reference, revision, change, changedAt }) {
    const body = JSON.stringify({ id, bookingId, partner, reference, revision, change, changedAt });
    const timestamp = Math.floor(Date.now() / 1_000);
    const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
    const headers = { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
    const sent = request(url, { method: "POST", agent, headers: { "content-type": "application/json", ...headers } });
    sent.end(body);
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    answer.resume();
    if (answer.statusCode !== 200) throw new Error(`The subscriber answered ${answer.statusCode}.`);
  },
});
process.exit(0);
