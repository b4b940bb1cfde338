/** Where a follower says what it does by itself. Loggers such as pino have this shape. */
export interface FeedLogger {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
}

export const consoleLogger: FeedLogger = {
  info: (details, message) => console.info(message, details),
  warn: (details, message) => console.warn(message, details),
};

/** What may be logged of an error. Its message may hold a guest's data. */
export function nameError(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}
