import { type Lease, leaseMs, type SeenLease } from "./leases.ts";

/** Tells which leases can be taken. */
export class LeaseWatch {
  /** The last lease that this process had, by the reader's name. */
  readonly #own = new Map<string, string>();
  /** What was seen the last time, and since when it has been so. */
  #seen = new Map<string, { lease: SeenLease; sinceMs: number }>();

  noteOwn({ name, token }: Pick<Lease, "name" | "token">): void {
    this.#own.set(name, token);
  }

  /**
   * @param leases those that this process wants and does not hold, as they are now
   * @param nowMs by `performance.now()`, no earlier than they were read
   * @returns those that nobody has, that this process had itself, or that have not been renewed for the time of a lease
   */
  look(leases: SeenLease[], nowMs: number): SeenLease[] {
    const seen = new Map<string, { lease: SeenLease; sinceMs: number }>();
    const free = leases.filter((lease) => {
      const { name, holder, seenAt } = lease;
      const before = this.#seen.get(name);
      const isSame = before?.lease.holder === holder && before.lease.seenAt === seenAt;
      const sinceMs = isSame ? before.sinceMs : nowMs;
      seen.set(name, { lease, sinceMs });
      return holder === null || holder === this.#own.get(name) || nowMs - sinceMs >= leaseMs;
    });
    this.#seen = seen;
    return free;
  }
}
