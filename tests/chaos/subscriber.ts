import { createHmac, createPublicKey, verify } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { canonicalContent } from "./canonical-content.ts";
import type { Received } from "./check-deliveries.ts";
import type { Random } from "./random.ts";

type Mood = "well" | "down" | "hanging" | "failing" | "busy" | "moved" | "lying";

const ills: readonly Mood[] = ["down", "hanging", "failing", "busy", "moved"];
const wellMs = { least: 1_000, most: 4_000 };
const illMs = { least: 500, most: 2_500 };
/** Of requests while it is well. */
const failingShare = 0.01;
const slowShare = 0.05;
const slowMs = { least: 50, most: 800 };
const retryAfterS = [1, 2, 3];
const path = "/hook";

export interface SubscriberOptions {
  random: Random;
  /** It also answers 200 and then loses what it got. It begins so, and goes on until it has lost something. */
  lies: boolean;
}

/**
 * Takes posts, and writes each of them down before it answers. Now and then it dies, hangs, fails, asks for time, says
 * that it has moved, or lies.
 */
export class ChaoticSubscriber {
  /** In the order in which they came. */
  readonly received: Received[] = [];
  /** Requests that only somebody sends who follows a redirect. */
  strays = 0;
  /** A `whsec_…` or `whpk_…`. Without it, no signature is right. */
  key = "";
  readonly #random: Random;
  readonly #lies: boolean;
  readonly #server = createServer((request, response) => void this.#take(request, response).catch(() => {}));
  readonly #resting = new AbortController();
  #mood: Mood;
  #hasLied = false;
  #changing: Promise<void> | undefined;

  private constructor({ random, lies }: SubscriberOptions) {
    this.#random = random;
    this.#lies = lies;
    this.#mood = lies ? "lying" : "well";
    this.#server.on("connection", (socket) => {
      if (this.#mood === "down") socket.resetAndDestroy();
    });
  }

  static async start(options: SubscriberOptions): Promise<ChaoticSubscriber> {
    const subscriber = new ChaoticSubscriber(options);
    await once(subscriber.#server.listen(0, "127.0.0.1"), "listening");
    return subscriber;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}${path}`;
  }

  /** From now on it is not always well. */
  begin(signal: AbortSignal): void {
    this.#changing = this.#changeMoods(AbortSignal.any([signal, this.#resting.signal]));
  }

  /** From now on it takes everything. */
  async rest(): Promise<void> {
    this.#resting.abort();
    await this.#changing;
  }

  async close(): Promise<void> {
    await this.rest();
    if (!this.#server.listening) return;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeAllConnections();
    await closed;
  }

  async #changeMoods(signal: AbortSignal): Promise<void> {
    const { between, pick } = this.#random;
    while (!signal.aborted) {
      const { least, most } = this.#mood === "well" ? wellMs : illMs;
      await sleep(between(least, most), undefined, { signal }).catch(() => {});
      if (this.#mood === "lying" && !this.#hasLied && !signal.aborted) continue;
      const mayLie = this.#lies ? (["lying"] as const) : [];
      this.#mood = this.#mood === "well" && !signal.aborted ? pick([...ills, ...mayLie]) : "well";
      // Ends those that hang, and those that are under way when it dies.
      this.#server.closeAllConnections();
    }
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    if (request.url !== path) this.strays += 1;
    const received = read(request, body, this.key);
    this.received.push(received);
    response.once("close", () => {
      received.endedAtMs = Math.min(received.endedAtMs, Date.now());
    });
    await this.#answer(received, response);
  }

  async #answer(received: Received, response: ServerResponse): Promise<void> {
    const { between, chance, pick } = this.#random;
    const mood = this.#mood;
    if (mood === "hanging") return;
    if (mood === "well" && chance(slowShare)) await sleep(between(slowMs.least, slowMs.most));
    if (mood === "busy") response.setHeader("Retry-After", pick(retryAfterS));
    if (mood === "moved") response.setHeader("Location", `${this.url}/elsewhere`);
    const statuses = { busy: 503, moved: 307, failing: 500, down: 500, well: 204, lying: 200 };
    const fails = mood === "well" && !this.#resting.signal.aborted && chance(failingShare);
    response.statusCode = fails ? 500 : statuses[mood];
    // Its connection may have ended meanwhile.
    if (response.destroyed) return;
    received.endedAtMs = Date.now();
    const isTaken = response.statusCode < 300;
    response.end(() => {
      if (!isTaken) return;
      received.answer = mood === "lying" ? "forgotten" : "kept";
      this.#hasLied ||= mood === "lying";
    });
  }
}

function read(request: IncomingMessage, body: string, key: string): Received {
  const header = (name: string) => String(request.headers[name]);
  const webhookId = header("webhook-id");
  const timestamp = header("webhook-timestamp");
  const signed = `${webhookId}.${timestamp}.${body}`;
  const { id, type, source, subject, data } = JSON.parse(body);
  const { bookingId, revision, change, ...more } = data;
  const isSilent = subject === bookingId && Object.keys(more).length === 0;
  return {
    receivedAtMs: Date.now(),
    endedAtMs: Number.POSITIVE_INFINITY,
    answer: "refused",
    recordedAtMs: null,
    timestampMs: Number(timestamp) * 1_000,
    webhookId,
    isSigned: header("webhook-signature")
      .split(" ")
      .some((signature) => isSignature(signature, signed, key)),
    changeId: Number(id),
    bookingId,
    partner: source,
    revision,
    change: type === `booking.${change}` ? change : type,
    eventId: isSilent ? null : String(more.eventId),
    content: more.sent === undefined ? undefined : more.sent && canonicalContent(more.sent),
  };
}

/** What stands before the 32 bytes of an Ed25519 key in its DER form (RFC 8410). */
const publicKeyPrefix = Buffer.from("302a300506032b6570032100", "hex");

/** As Standard Webhooks has it: https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md */
function isSignature(signature: string, signed: string, key: string): boolean {
  const [version, value = ""] = signature.split(",");
  const bytes = Buffer.from(key.replace(/^wh\w+?_/, ""), "base64");
  if (version === "v1" && key.startsWith("whsec_"))
    return createHmac("sha256", bytes).update(signed).digest("base64") === value;
  if (version !== "v1a" || !key.startsWith("whpk_")) return false;
  const publicKey = createPublicKey({ key: Buffer.concat([publicKeyPrefix, bytes]), format: "der", type: "spki" });
  return verify(null, Buffer.from(signed), publicKey, Buffer.from(value, "base64"));
}
