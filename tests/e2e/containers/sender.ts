import { request as plainRequest } from "node:http";
import { request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";

const answerTimeoutMs = 15_000;

interface Answer {
  sentAt: number;
  answeredAt: number;
  /** 0: none came. */
  status: number;
  eventId: string | undefined;
  /** Of a refusal. */
  body: string;
}

/** A partner that posts an event every so often, and never the same one again. */
export class Sender {
  readonly answers: Answer[] = [];
  readonly #url: string;
  readonly #intervalMs: number;
  readonly #stopped = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  readonly #done: Promise<void>;

  /** @param url of ingest or its proxy, whose certificate is not checked */
  constructor(url: string, secret: string, intervalMs: number) {
    this.#url = `${url}/booking-event/create/${secret}`;
    this.#intervalMs = intervalMs;
    this.#done = this.#run();
  }

  get accepted(): string[] {
    return this.answers.flatMap(({ eventId }) => eventId ?? []);
  }

  get refused(): Answer[] {
    return this.answers.filter(({ status }) => status !== 200);
  }

  /** The longest time between two events that were accepted, by when they were sent: ingest may answer later. */
  longestOutageMs(since: number): number {
    const times = this.answers.filter(({ status, sentAt }) => status === 200 && sentAt >= since);
    const moments = [since, ...times.map(({ sentAt }) => sentAt).toSorted((a, b) => a - b)];
    return Math.max(0, ...moments.slice(1).map((at, index) => at - (moments[index] ?? at)));
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#done;
    await Promise.all(this.#underWay);
  }

  async #run(): Promise<void> {
    for (let number = 1; !this.#stopped.signal.aborted; number += 1) {
      const sent = this.#send(number).finally(() => this.#underWay.delete(sent));
      this.#underWay.add(sent);
      await sleep(this.#intervalMs);
    }
  }

  async #send(number: number): Promise<void> {
    const sentAt = Date.now();
    const { status, body } = await post(this.#url, {
      consumerTripPartnerExternalReference: `CHECK-${sentAt}-${number}`,
      consumerGivenName: "Ada",
      consumerTripArrivalDate: "2030-06-14",
      consumerTripReturnDate: "2030-06-21",
    }).catch((error) => ({ status: 0, body: String(error) }));
    const eventId = status === 200 ? JSON.parse(body).eventId : undefined;
    this.answers.push({ sentAt, answeredAt: Date.now(), status, eventId, body: status === 200 ? "" : body });
  }
}

function post(url: string, event: object): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const options = {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      signal: AbortSignal.timeout(answerTimeoutMs),
      rejectUnauthorized: false,
    };
    const sent = (url.startsWith("https:") ? request : plainRequest)(url, options, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text) => {
        body += text;
      });
      response.on("end", () => resolve({ status: response.statusCode ?? 0, body })).on("error", reject);
    });
    sent.on("error", reject).end(JSON.stringify(event));
  });
}
