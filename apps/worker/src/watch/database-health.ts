import { adviseOnDatabase, createServerCheck } from "@booking-events/runtime";
import { otherDatabaseCode, requireDatabase } from "@booking-events/store";
import type { Pool } from "pg";
import type { Migration } from "../migrate-at-start.ts";
import { classifyFault, type Fault } from "../outages/classify-fault.ts";
import type { OutageGate } from "../outages/wait-out-outage.ts";

/** Whether the worker can use PostgreSQL, by what it has met and by asking. */
export class DatabaseHealth {
  readonly #migration: Pick<Migration, "isDone" | "currentFault" | "database">;
  readonly #outageGate: Pick<OutageGate, "currentOutage">;
  readonly #findFault: () => Promise<Fault | "no answer" | null>;

  constructor(parts: { pool: Pool; migration: Migration; outageGate: OutageGate }) {
    this.#migration = parts.migration;
    this.#outageGate = parts.outageGate;
    const { pool, migration } = parts;
    this.#findFault = createServerCheck(
      () => (migration.isDone() ? requireDatabase(pool, migration.database()) : pool.query("select 1")),
      classifyFault,
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
    const outage = this.#outageGate.currentOutage();
    if (outage !== null && outage.code === otherDatabaseCode) return outage.message;
    const code = this.#currentOutage();
    if (code !== null) return `PostgreSQL is unavailable (${code}). ${adviseOnDatabase(code)} The worker waits for it.`;
    if (!this.#migration.isDone()) return "The database is being migrated.";
    const fault = await this.#findFault();
    if (fault === null) return null;
    const { code: faultCode, message } = fault === "no answer" ? { code: fault, message: "" } : fault;
    if (faultCode === otherDatabaseCode) return message;
    return `PostgreSQL does not answer (${faultCode}). ${adviseOnDatabase(faultCode)}`;
  }

  #currentOutage(): string | null {
    return this.#outageGate.currentOutage()?.code ?? this.#migration.currentFault();
  }
}
