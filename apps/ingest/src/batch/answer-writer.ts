import type { ServerResponse } from "node:http";
import { deflateRawSync, inflateRawSync } from "node:zlib";
import { ClientGone, Pace, Refusal, TooSlow } from "@booking-events/http";
import { answers } from "@booking-events/schema";

export const writerLimits = {
  /** Of the answers that wait, compressed. It is enough for some 250,000 events, most of which are random ids. */
  maxHeldBytes: 4 * 1_048_576,
  /** Compressing as much takes half a millisecond. */
  segmentCharacters: 32_768,
  pace: {},
};

type WriterLimits = Omit<typeof writerLimits, "pace"> & { pace: ConstructorParameters<typeof Pace>[0] };

/**
 * Writes the answers of a batch. Many clients read nothing before they have sent everything, and we would wait for each
 * other. So what the client does not read yet is held, compressed to a fifth.
 */
export class AnswerWriter {
  readonly #response: ServerResponse;
  readonly #limits: WriterLimits;
  readonly #pace: Pace;
  readonly #segments: Buffer[] = [];
  #segmentBytes = 0;
  /** What is held and not compressed yet. */
  #tail = "";
  #wake: () => void = () => {};

  constructor(response: ServerResponse, limits: WriterLimits = writerLimits) {
    this.#response = response;
    this.#limits = limits;
    this.#pace = new Pace(limits.pace);
    // In another turn of the event loop: a client that reads as fast as we write would keep all others waiting.
    response.on("drain", () => setImmediate(() => this.#writeHeld()));
    response.once("close", () => this.#wake());
  }

  /** For tests and the log: how much is held. */
  get heldBytes(): number {
    return this.#segmentBytes + this.#tail.length;
  }

  write(lines: string): void {
    if (this.heldBytes === 0 && !this.#response.writableNeedDrain) {
      this.#send(lines);
      return;
    }
    this.#tail += lines;
    if (this.#tail.length < this.#limits.segmentCharacters) return;
    const segment = deflateRawSync(this.#tail, { level: 1 });
    this.#segments.push(segment);
    this.#segmentBytes += segment.length;
    this.#tail = "";
  }

  /** Waits until more may be written. @throws Refusal if the client reads too little meanwhile; ClientGone */
  async waitForRoom(): Promise<void> {
    try {
      while (this.heldBytes > this.#limits.maxHeldBytes) await this.#waitForClient();
    } catch (error) {
      throw error instanceof TooSlow ? new Refusal(answers.answersUnread) : error;
    }
  }

  /** Waits until everything is written. @throws ClientGone, also if the client reads too slowly */
  async finish(): Promise<void> {
    try {
      while (this.heldBytes > 0 || this.#response.writableNeedDrain) await this.#waitForClient();
    } catch (error) {
      throw error instanceof TooSlow ? new ClientGone() : error;
    }
  }

  /** Waits until the client has read something. */
  async #waitForClient(): Promise<void> {
    if (this.#response.closed) throw new ClientGone();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#wake = resolve;
    await this.#pace.wait(promise);
    if (this.#response.closed) throw new ClientGone();
  }

  #writeHeld(): void {
    const response = this.#response;
    while (this.heldBytes > 0 && !response.writableNeedDrain && !response.destroyed) this.#send(this.#takeHeld());
    this.#wake();
  }

  #takeHeld(): string | Buffer {
    const segment = this.#segments.shift();
    if (segment === undefined) {
      const tail = this.#tail;
      this.#tail = "";
      return tail;
    }
    this.#segmentBytes -= segment.length;
    return inflateRawSync(segment);
  }

  #send(lines: string | Buffer): void {
    this.#pace.add(lines.length);
    this.#response.write(lines);
  }
}
