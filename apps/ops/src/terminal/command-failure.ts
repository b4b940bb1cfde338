/** A command was refused or failed. The message says what happened and what to do, and holds no secret. */
export class CommandFailure extends Error {
  override name = "CommandFailure";
  /** 1: refused or failed. 2: wrong usage. */
  readonly exitCode: 1 | 2;

  constructor(message: string, options: { exitCode?: 1 | 2; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.exitCode = options.exitCode ?? 1;
  }
}
