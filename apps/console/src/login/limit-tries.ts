const windowMs = 60_000;
const maxWrong = 10;
/** Those who share an address, such as a proxy's, share its tries. */
const maxAddresses = 10_000;

/** Limits wrong passwords to ten a minute from one address. */
export class TryLimit {
  readonly #now: () => Date;
  readonly #wrong = new Map<string, number>();
  #beganAtMs = 0;

  constructor(now: () => Date) {
    this.#now = now;
  }

  mayTry(address: string): boolean {
    if (this.#now().getTime() - this.#beganAtMs >= windowMs) this.#begin();
    const wrong = this.#wrong.get(address);
    return wrong === undefined ? this.#wrong.size < maxAddresses : wrong < maxWrong;
  }

  countWrong(address: string): void {
    this.#wrong.set(address, (this.#wrong.get(address) ?? 0) + 1);
  }

  #begin(): void {
    this.#beganAtMs = this.#now().getTime();
    this.#wrong.clear();
  }
}
