import { SetupProblem } from "./setup-problem.ts";

// The reader of the pipe, or the terminal, may be gone before us.
process.stdout.on("error", () => {});

export function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** Runs one step and reports its end, with what `describe` says of its result. */
export async function step<Result>(
  name: string,
  work: () => Promise<Result>,
  describe: (result: Result) => string = () => "",
): Promise<Result> {
  const startedAtMs = Date.now();
  const result = await work();
  const detail = describe(result);
  say(`✓ ${name}${detail && `: ${detail}`} (${((Date.now() - startedAtMs) / 1_000).toFixed(1)} s)`);
  return result;
}

/** What went wrong, and what to do about it. */
export function showProblem(error: unknown): void {
  if (error instanceof SetupProblem) say(`\n✗ ${error.message}\n\n  What to do: ${error.advice}`);
  else say(`\n✗ ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
}

/** A warning or error of an app's log, formatted for people. Anything else that it prints, such as a crash, is kept. */
export function attentionLine(name: string, line: string): string | undefined {
  const entry = parseLogEntry(line);
  if (!entry) return line.trim() === "" ? undefined : `[${name}] ${line}`;
  const { level, time, msg, err, name: _name, pid: _pid, ...rest } = entry;
  if (level !== "warn" && level !== "error" && level !== "fatal") return undefined;
  const { type, code, message } = (err ?? {}) as Record<string, unknown>;
  const cause = [type, code, message].filter((part) => part !== undefined).join(" ");
  const details = Object.entries(rest).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const clock = typeof time === "string" ? time.slice(11, 19) : "";
  return [`[${name}]`, clock, level, msg, cause && `(${cause})`, ...details].filter(Boolean).join(" ");
}

function parseLogEntry(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
