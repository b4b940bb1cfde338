import { describeOtherDatabase, type QueueReader } from "@booking-events/queue";
import { keepDoing, type Logger, withDeadline } from "@booking-events/runtime";
import { readDatabaseIdentity } from "@booking-events/store";
import type { Pool } from "pg";

const intervalMs = 1_000;
const deadlineMs = 1_000;
const notCompared =
  "Redis and PostgreSQL have not both answered yet, so it is not known whether the queue feeds this database.";

/**
 * Notices if the queue feeds another database than the one that lookup reads. Then lookup would take waiting and applied
 * events for unknown ones.
 */
export class DatabaseWatch {
  readonly #parts: { queue: Pick<QueueReader, "readDatabase">; database: Pool; logger: Logger };
  #problem: string | null = notCompared;

  constructor(parts: { queue: Pick<QueueReader, "readDatabase">; database: Pool; logger: Logger }) {
    this.#parts = parts;
  }

  /** Why lookup must not answer, in a sentence for an operator; null: it may, as far as is known since the first look. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Looks now, and regularly until the signal aborts. Resolves when it has looked once, or could not. */
  async start(signal: AbortSignal): Promise<void> {
    await this.#look().catch(() => {});
    keepDoing(() => this.#look(), intervalMs, signal);
  }

  /** @throws if Redis or PostgreSQL does not answer, which is reported elsewhere. What was known before stays */
  async #look(): Promise<void> {
    const { queue, database, logger } = this.#parts;
    const reading = Promise.all([queue.readDatabase(), readDatabaseIdentity(database)]);
    const [recorded, identity] = await withDeadline(reading, deadlineMs);
    const isOther = recorded !== null && recorded !== identity.id;
    const problem = isOther ? describeOtherDatabase(recorded, identity) : null;
    const before = this.#problem;
    if (problem === before) return;
    this.#problem = problem;
    if (problem === null && before === notCompared) return;
    if (problem === null) logger.info("the queue feeds this database: answering questions");
    else logger.error(`${problem}. No question is answered.`);
  }
}
