import { Refusal } from "@booking-events/http";
import { type ListViolation, lookupAnswers, maxListViolations } from "@booking-events/schema";

/** Gathers what is wrong with a list, so that its sender can correct several lines at once. */
export class WrongLines {
  readonly #violations: ListViolation[] = [];

  get areThere(): boolean {
    return this.#violations.length > 0;
  }

  /**
   * @param line counted from 1
   * @param problem continues a sentence that begins with the line
   * @throws Refusal if that was the last one that an answer names
   */
  add(line: number, { code, member, problem }: WrongLine): void {
    const message = `Line ${line}: ${problem}`;
    this.#violations.push({ message, code, propertyPath: [String(line), ...(member === undefined ? [] : [member])] });
    if (this.#violations.length === maxListViolations) this.refuse();
  }

  /** @throws Refusal if a line is wrong */
  refuse(): void {
    if (!this.areThere) return;
    // Contradictions between lines are found after the other faults of a page.
    const inOrder = this.#violations.toSorted((one, other) => lineOf(one) - lineOf(other));
    throw new Refusal(lookupAnswers.invalidListLine(inOrder));
  }
}

export interface WrongLine {
  code: ListViolation["code"];
  /** The line's member that is wrong. Undefined: all of the line. */
  member?: "reference" | "referenceKind" | "digest";
  problem: string;
}

function lineOf({ propertyPath: [line] }: ListViolation): number {
  return Number(line);
}
