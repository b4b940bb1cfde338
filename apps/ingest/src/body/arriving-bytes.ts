/** Of each partner. It is enough for the largest bodies of 256 requests at once. */
export const maxArrivingBytes = 16 * 1_048_576;

/**
 * Bounds the memory that bodies occupy while they are not complete. A partner within its rate limit could otherwise
 * begin thousands of large bodies and finish none.
 */
export class ArrivingBytes {
  readonly #byPartner = new Map<string, number>();

  /** @param onExceeded called when a part arrives that exceeds the partner's limit, with what it has begun elsewhere */
  begin(partner: string, onExceeded: () => void): Arrival {
    let own = 0;
    let isOver = false;
    const change = (bytes: number) => {
      own += bytes;
      const total = (this.#byPartner.get(partner) ?? 0) + bytes;
      if (total === 0) this.#byPartner.delete(partner);
      else this.#byPartner.set(partner, total);
      return total;
    };
    return {
      add(bytes) {
        if (!isOver && change(bytes) > maxArrivingBytes) onExceeded();
      },
      end() {
        isOver = true;
        change(-own);
      },
    };
  }
}

/** A body that is arriving. */
export interface Arrival {
  add(bytes: number): void;
  /** Call this when the body is complete, or given up. What arrives after that is not counted. */
  end(): void;
}
