/** A process can't start, and its operator can mend it. The message says how; it holds no secret. */
export class StartError extends Error {
  override name = "StartError";
}

/** Ends a process that could not start: a sentence for the operator instead of a stack. Anything else is thrown on. */
export function exitOnStartError(error: unknown): never {
  if (!(error instanceof StartError)) throw error;
  process.stderr.write(`Could not start. ${error.message}\n`);
  process.exit(1);
}
