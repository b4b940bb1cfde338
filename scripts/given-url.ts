import { untilAnswers } from "./local-server.ts";
import { SetupProblem } from "./setup-problem.ts";

const TIMEOUT_MS = 15_000;

/** Waits until the Redis or PostgreSQL whose URL the user gives in this environment variable answers. */
export async function untilGivenAnswers(
  variable: string,
  url: string,
  ping: (url: string) => Promise<void>,
  signal: AbortSignal,
): Promise<string> {
  if (!URL.canParse(url)) {
    const example = variable === "REDIS_URL" ? "redis://host:6379" : "postgres://user:password@host:5432/database";
    throw new SetupProblem(`${variable} is not a URL.`, `Set it to a URL such as ${example}, or leave it out.`);
  }
  const tooLate = (cause: unknown) =>
    new SetupProblem(
      // Only the host of the URL, which may contain a password.
      `${variable} is set, but the server at ${new URL(url).host} can't be used. ${cause}`,
      `Start it or correct ${variable}; or leave ${variable} out to have a server started here.`,
      { cause },
    );
  await untilAnswers(() => ping(url), { timeoutMs: TIMEOUT_MS, tooLate, signal });
  return url;
}
