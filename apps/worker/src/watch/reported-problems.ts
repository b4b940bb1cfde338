/** The problems of one kind that there are at the moment, as sentences for an operator. */
export class ReportedProblems {
  readonly #onChange: (problems: string[]) => void;
  #current: string[] = [];

  /** @param onChange called when problems come, change or go. It logs them */
  constructor(onChange: (problems: string[]) => void) {
    this.#onChange = onChange;
  }

  get current(): readonly string[] {
    return this.#current;
  }

  report(problems: string[]): void {
    if (problems.join() === this.#current.join()) return;
    this.#current = problems;
    this.#onChange(problems);
  }
}
