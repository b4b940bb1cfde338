import { adviseOnDatabase, createServerCheck } from "@booking-events/runtime";
import type { Pool } from "pg";
import type { Migration } from "../migrate-at-start.ts";
import { classifyFault } from "../outages/classify-fault.ts";
import type { OutageGate } from "../outages/wait-out-outage.ts";

/** Whether the worker can use PostgreSQL, by what it has met and by asking. */
export class DatabaseHealth {
  readonly #migration: Pick<Migration, "isDone" | "currentFault">;
  readonly #outageGate: Pick<OutageGate, "currentOutage">;
  readonly #findFault: () => Promise<string | null>;

  constructor(parts: { pool: Pool; migration: Migration; outageGate: OutageGate }) {
    this.#migration = parts.migration;
    this.#outageGate = parts.outageGate;
    this.#findFault = createServerCheck(
      () => parts.pool.query("select 1"),
      (error) => classifyFault(error).code,
    );
  }

  /** Whether the worker waits for PostgreSQL. */
  isOut(): boolean {
    return this.#currentOutage() !== null;
  }

  /** Asks PostgreSQL, which may be down although no event has met that yet. */
  async answers(): Promise<boolean> {
    return (await this.#findFault()) === null;
  }

  /** Returns why the worker can't use PostgreSQL, in a sentence for an operator; null: it can. */
  async findProblem(): Promise<string | null> {
    const outage = this.#currentOutage();
    if (outage !== null)
      return `PostgreSQL is unavailable (${outage}). ${adviseOnDatabase(outage)} The worker waits for it.`;
    if (!this.#migration.isDone()) return "The database is being migrated.";
    const fault = await this.#findFault();
    return fault && `PostgreSQL does not answer (${fault}). ${adviseOnDatabase(fault)}`;
  }

  #currentOutage(): string | null {
    return this.#outageGate.currentOutage()?.code ?? this.#migration.currentFault();
  }
}
