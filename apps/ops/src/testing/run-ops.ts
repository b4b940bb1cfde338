import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { compileCache, fromSource } from "@booking-events/harness/app-process";
import { bundleProgram } from "@booking-events/harness/bundle-program";
import { runProgram } from "../program.ts";

export interface Ran {
  exitCode: number | null;
  stdout: string;
  stderr: string;
}

/** Without it, each action would remark that the system's user acts. */
const named = { OPERATOR: "tester" };

/** Runs a command in this process, without this process's environment. */
export async function runOps(
  args: string[],
  options: {
    environment?: Record<string, string>;
    stdin?: string;
    isTerminal?: boolean;
    /** The width of the terminal that shows the output. */
    columns?: number;
    now?: Date;
    atSignal?: (describe: () => string) => void;
  } = {},
): Promise<Ran> {
  const [stdout, stderr] = [createCollector(), createCollector()];
  const exitCode = await runProgram(args, {
    stdin: Object.assign(Readable.from([options.stdin ?? ""]), { isTTY: options.isTerminal === true }),
    stdout: Object.assign(
      stdout.stream,
      options.columns === undefined ? {} : { isTTY: true, columns: options.columns },
    ),
    stderr: stderr.stream,
    environment: { ...named, ...options.environment },
    now: () => options.now ?? new Date(),
    endWithReader: () => {},
    atSignal: options.atSignal ?? (() => {}),
  });
  return { exitCode, stdout: stdout.collected(), stderr: stderr.collected() };
}

const main = fromSource(fileURLToPath(new URL("../main.ts", import.meta.url)));

/** Runs a command in a process of its own, like an operator, from source. */
export async function spawnOps(
  args: string[],
  environment: Record<string, string>,
  output: number | "pipe" = "pipe",
): Promise<Ran> {
  return (await startOps(args, environment, output)).ran();
}

/** As above, for a test that sends signals. */
export async function startOps(
  args: string[],
  environment: Record<string, string>,
  output: number | "pipe" = "pipe",
): Promise<{ kill: (signal: NodeJS.Signals) => void; ran: () => Promise<Ran> }> {
  const child = spawn(process.execPath, [...(await bundleProgram(main)), ...args], {
    env: { ...compileCache, ...named, ...environment },
    stdio: ["ignore", output, "pipe"],
  });
  const read = (stream: Readable | null) => (stream === null ? "" : text(stream));
  const ended = Promise.all([read(child.stdout), read(child.stderr), once(child, "close")]);
  return {
    kill: (signal) => void child.kill(signal),
    ran: async () => {
      const [stdout, stderr] = await ended;
      return { exitCode: child.exitCode, stdout, stderr };
    },
  };
}

/**
 * As above, but the reader of the output goes away: before there is any, as with `2>&1 | true`, or after the first
 * report on stderr, as with `2>&1 | head`.
 */
export async function spawnUnreadOps(
  args: string[],
  environment: Record<string, string>,
  { isBegunToRead = false } = {},
): Promise<number | null> {
  const child = spawn(process.execPath, [...(await bundleProgram(main)), ...args], {
    env: { ...compileCache, ...named, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (isBegunToRead) await once(child.stderr, "readable");
  child.stdout.destroy();
  child.stderr.destroy();
  await once(child, "exit");
  return child.exitCode;
}

/** As above, but only stdout is closed, after its first bytes. */
export async function spawnCutOps(
  args: string[],
  environment: Record<string, string>,
): Promise<Pick<Ran, "exitCode" | "stderr">> {
  const child = spawn(process.execPath, [...(await bundleProgram(main)), ...args], {
    env: { ...compileCache, ...named, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [stderr] = await Promise.all([
    text(child.stderr),
    once(child, "close"),
    once(child.stdout, "readable").then(() => child.stdout.destroy()),
  ]);
  return { exitCode: child.exitCode, stderr };
}

function createCollector(): { stream: Writable; collected: () => string } {
  let collected = "";
  const stream = new Writable({
    write(chunk, _encoding, done) {
      collected += chunk;
      done();
    },
  });
  return { stream, collected: () => collected };
}
