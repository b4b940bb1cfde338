import type { Answer, ViolationCode } from "@booking-events/schema";

/** What the log and the metrics may say about a violation: nothing that the sender wrote. */
export interface FieldViolation {
  /** A field's name in the contract; `unlisted`: a field that the contract does not name; `payload`: the whole of it. */
  field: string;
  rule: ViolationCode;
}

/** Thrown to end the processing of a request with the given answer. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly answer: Answer;
  /** A more precise code for the log, if the answer must not reveal it. */
  readonly outcome: string;
  /** The violations of the payload's rules, for the log. */
  readonly violations: FieldViolation[] | undefined;
  /** A digest of the booking's reference, if that could be read. */
  readonly subject: string | undefined;

  constructor(
    answer: Answer,
    options: { outcome?: string; cause?: unknown; violations?: FieldViolation[] | undefined; subject?: string } = {},
  ) {
    super(answer.code, { cause: options.cause });
    this.answer = answer;
    this.outcome = options.outcome ?? answer.code;
    this.violations = options.violations;
    this.subject = options.subject;
  }
}
