import { isRevoked, isValid, type Partner, type PartnerSecret } from "@booking-events/partners";
import type { Records, Revocation } from "@booking-events/queue";
import { Gauge, type Logger, type Registry, repeat } from "@booking-events/runtime";

const defaultIntervalMs = 1_000;

interface Options {
  read: Records["readRevocations"];
  /** Undefined: this process records nothing. */
  write?: Records["writeRevocations"] | undefined;
  logger: Logger;
}

/**
 * Knows which secrets were revoked, whatever the partners file says: a copy from before the revocation, from a backup or
 * an earlier deployment, would bring them back. Operators' commands record revocations in Redis, and so does ingest when
 * it sees one in the file.
 *
 * A secret that leaves the file, a partner that is disabled, and an expiry are no revocations: undoing them is ordinary.
 */
export class RevocationWatch {
  readonly #options: Options;
  readonly #revived: Gauge;
  readonly #stopping = new AbortController();
  /** Digests. None is ever removed, not even if Redis loses its data. */
  readonly #revoked = new Set<string>();
  #inFile = new Map<string, Revocation>();
  #partners: readonly Partner[] = [];
  #contradictions: string[] = [];
  #isKnown = false;

  /** @param options.app the prefix of the metric's name */
  constructor(options: Options & { app: string; metrics: Registry }) {
    this.#options = options;
    this.#revived = new Gauge({
      name: `${options.app}_partners_file_revived_secrets`,
      help: "Secrets that are valid by the partners file, although they were revoked. They stay refused.",
      registers: [options.metrics],
    });
  }

  /** Resolves when Redis has said which secrets were revoked, or has not answered. */
  async start(intervalMs = defaultIntervalMs): Promise<void> {
    await this.#refresh();
    void repeat(() => this.#refresh(), intervalMs, this.#stopping.signal);
  }

  /** Call this with each version of the partners file. */
  setPartners(partners: readonly Partner[]): void {
    this.#partners = partners;
    const revoked = secretsOf(partners).filter(({ secret }) => isRevoked(secret));
    this.#inFile = new Map(revoked.map(({ revocation }) => [revocation.sha256, revocation]));
    for (const sha256 of this.#inFile.keys()) this.#revoked.add(sha256);
    this.#compare();
  }

  isRevoked(sha256: string): boolean {
    return this.#revoked.has(sha256);
  }

  /** Whether Redis has been read since the process started. */
  isKnown(): boolean {
    return this.#isKnown;
  }

  /** Why secrets can't be judged although Redis answers, for an operator. */
  problems(): string[] {
    if (this.#isKnown) return [];
    return [
      "Redis has not said yet which secrets were revoked. Let this process' user read them: see deploy/redis-users.conf.",
    ];
  }

  /** For an operator. */
  warnings(): string[] {
    if (this.#contradictions.length === 0) return [];
    return [
      `The partners file brings back revoked secrets, which stay refused: ${this.#contradictions.join(", ")}. It is ` +
        "probably an old copy: put the current one in its place. A partner that needs a secret gets a new one.",
    ];
  }

  stop(): void {
    this.#stopping.abort();
  }

  async #refresh(): Promise<void> {
    const { read, write, logger } = this.#options;
    try {
      const recorded = await read();
      for (const sha256 of recorded) this.#revoked.add(sha256);
      this.#isKnown = true;
      this.#compare();
      const missing = [...this.#inFile.values()].filter(({ sha256 }) => !recorded.has(sha256));
      if (missing.length > 0) await write?.(missing);
    } catch (error) {
      logger.debug({ err: error }, "reading or recording revocations failed and will be retried");
    }
  }

  /** A file that says so itself does not contradict. */
  #compare(): void {
    const now = new Date();
    const contradictions = secretsOf(this.#partners)
      .filter(({ secret }) => this.#revoked.has(secret.sha256) && isValid(secret, now))
      .map(({ revocation: { partner, secretId } }) => `${partner}/${secretId}`);
    if (contradictions.join() !== this.#contradictions.join() && contradictions.length > 0)
      this.#options.logger.error(
        { secrets: contradictions },
        "the partners file brings back revoked secrets: they stay refused",
      );
    this.#contradictions = contradictions;
    this.#revived.set(contradictions.length);
  }
}

function secretsOf(partners: readonly Partner[]): { secret: PartnerSecret; revocation: Revocation }[] {
  return partners.flatMap(({ id: partner, secrets }) =>
    secrets.map((secret) => ({ secret, revocation: { sha256: secret.sha256, partner, secretId: secret.id } })),
  );
}
