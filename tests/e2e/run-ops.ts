import { execFile } from "node:child_process";
import { compileCache } from "@booking-events/harness/app-process";
import { bundleProgram } from "@booking-events/harness/bundle-program";

export interface Ran {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** Runs a command of the built operator's command line, whatever it ends with. */
export async function runOps(args: string[], environment: Record<string, string>): Promise<Ran> {
  const program = await bundleProgram(["apps/ops/dist/main.js"]);
  const env = { PATH: process.env["PATH"], ...compileCache, OPERATOR: "tester", ...environment };
  return new Promise((resolve) => {
    execFile(process.execPath, [...program, ...args], { env }, (error, stdout, stderr) =>
      resolve({ exitCode: Number(error?.code ?? 0), stdout, stderr }),
    );
  });
}

/**
 * @returns what the command prints
 * @throws when it fails
 */
export async function printedByOps(args: string[], environment: Record<string, string>): Promise<string> {
  const { exitCode, stdout, stderr } = await runOps(args, environment);
  if (exitCode !== 0) throw new Error(`ops ${args.join(" ")} ended with ${exitCode}:\n${stdout}${stderr}`);
  return stdout;
}
