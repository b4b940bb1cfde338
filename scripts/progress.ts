import { SetupProblem } from "./setup-problem.ts";

/** How long a step may take before it is worth saying, where there is no live line to show it. */
const SLOW_STEP_MS = 2_000;
const LIVE_LINE_MS = 120;

/**
 * What the person at the terminal sees of the steps: one line for each that is done, and what is under way now. On a
 * terminal that is one live line at the bottom; in a pipe, a line for each step that takes a while.
 */
export class Progress {
  readonly #out: NodeJS.WriteStream;
  readonly #running = new Map<string, number>();
  readonly #named = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #hasLiveLine = false;

  constructor(out: NodeJS.WriteStream = process.stdout) {
    this.#out = out;
    // The reader of the pipe, or the terminal, may be gone before us.
    out.on("error", () => {});
  }

  /** Runs one step and reports its end, with what `describe` says of its result. */
  async step<Result>(
    name: string,
    work: () => Promise<Result>,
    describe: (result: Result) => string = () => "",
  ): Promise<Result> {
    const startedAt = Date.now();
    this.#begin(name, startedAt);
    try {
      const result = await work();
      const detail = describe(result);
      this.#end(name);
      this.line(`✓ ${name}${detail && `: ${detail}`} (${seconds(Date.now() - startedAt)})`);
      return result;
    } finally {
      this.#end(name);
    }
  }

  line(text: string): void {
    this.#clearLiveLine();
    this.#out.write(`${text}\n`);
  }

  /** What went wrong, and what to do about it. */
  problem(error: unknown): void {
    if (error instanceof SetupProblem) this.line(`\n✗ ${error.message}\n\n  What to do: ${error.advice}`);
    else this.line(`\n✗ ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  }

  #begin(name: string, startedAt: number): void {
    this.#running.set(name, startedAt);
    this.#timer ??= this.#out.isTTY
      ? setInterval(() => this.#drawLiveLine(), LIVE_LINE_MS).unref()
      : setInterval(() => this.#nameSlowSteps(), SLOW_STEP_MS).unref();
  }

  #end(name: string): void {
    this.#running.delete(name);
    if (this.#running.size > 0) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#clearLiveLine();
  }

  #drawLiveLine(): void {
    const names = [...this.#running].map(([name, startedAt]) => `${name} ${seconds(Date.now() - startedAt)}`);
    // A line that wraps can't be cleared. Some terminals say that they are 0 wide.
    const text = `… ${names.join(", ")}`.slice(0, (this.#out.columns || 80) - 1);
    this.#out.write(`\r\x1b[2K${text}`);
    this.#hasLiveLine = true;
  }

  #clearLiveLine(): void {
    if (this.#hasLiveLine) this.#out.write("\r\x1b[2K");
    this.#hasLiveLine = false;
  }

  #nameSlowSteps(): void {
    for (const [name, startedAt] of this.#running) {
      if (this.#named.has(name) || Date.now() - startedAt < SLOW_STEP_MS) continue;
      this.#named.add(name);
      this.line(`… ${name}`);
    }
  }
}

function seconds(durationMs: number): string {
  return `${(durationMs / 1000).toFixed(1)} s`;
}
