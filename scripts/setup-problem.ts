/** A failure that the user can fix: what happened, and what to do. Printed without a stack. */
export class SetupProblem extends Error {
  readonly advice: string;

  constructor(message: string, advice: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "SetupProblem";
    this.advice = advice;
  }
}
