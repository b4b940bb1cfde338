/**
 * A process cannot start because of a problem that its operator can fix. The message says how and contains no secret.
 */
export class StartError extends Error {
  override name = "StartError";
}

/**
 * Ends a process that could not start with a sentence for the operator instead of a stack. Rethrows all other errors.
 */
export function exitOnStartError(error: unknown): never {
  if (!(error instanceof StartError)) throw error;
  process.stderr.write(`Could not start. ${error.message}\n`);
  process.exit(1);
}
