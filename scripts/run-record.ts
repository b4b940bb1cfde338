import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { root, runRecordFile } from "./clone.ts";
import { isRunning, type ProcessRecord, recordProcess, stopProcess } from "./process-record.ts";
import { SetupProblem } from "./setup-problem.ts";

/** Which processes a start in this clone consists of, so that the next one knows what it finds. */
interface RunRecord {
  /** In a copy of the clone, the record is another's. */
  root: string;
  starter: ProcessRecord;
  apps: ProcessRecord[];
}

const APP_STOP_TIMEOUT_MS = 20_000;

/**
 * Makes this process the one that runs this clone. Refuses while another does; ends the apps of one that was killed.
 *
 * @returns how many such apps there were
 */
export async function claimClone(): Promise<number> {
  const earlier = readRunRecord();
  if (earlier && isRunning(earlier.starter)) {
    throw new SetupProblem(
      `It already runs in this folder (process ${earlier.starter.pid}).`,
      `Use that one, or stop it: Ctrl-C in its terminal, or kill -INT ${earlier.starter.pid}. ` +
        "Another clone of the repository can run beside it.",
    );
  }
  const leftBehind = earlier?.apps.filter(isRunning) ?? [];
  await Promise.all(leftBehind.map((app) => stopProcess(app, { signal: "SIGTERM", timeoutMs: APP_STOP_TIMEOUT_MS })));
  const starter = recordProcess(process.pid);
  if (!starter) throw new Error("This process runs, so it has a record");
  writeRunRecord({ root, starter, apps: [] });
  return leftBehind.length;
}

/** Called as soon as an app's process exists. */
export function recordApp(pid: number): void {
  const run = readRunRecord();
  const app = recordProcess(pid);
  if (run && app) writeRunRecord({ ...run, apps: [...run.apps, app] });
}

/** After everything has stopped. */
export function releaseClone(): void {
  if (readRunRecord()?.starter.pid === process.pid) rmSync(runRecordFile, { force: true });
}

function readRunRecord(): RunRecord | undefined {
  try {
    const record: Partial<RunRecord> = JSON.parse(readFileSync(runRecordFile, "utf8"));
    const { starter, apps } = record;
    return starter && apps && record.root === root ? { root, starter, apps } : undefined;
  } catch {
    return undefined;
  }
}

function writeRunRecord(record: RunRecord): void {
  writeFileSync(runRecordFile, JSON.stringify(record));
}
