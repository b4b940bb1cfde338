import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { waitFor } from "@booking-events/harness";
import { partner } from "@booking-events/harness/partners";
import { noLimit, writePartnersFile } from "@booking-events/harness/partners-file";
import { freePort } from "@booking-events/scripts/ports";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The first is valid; of the others each is refused for a reason of its own. */
export const secrets = ["fuzz-valid-secret", "fuzz-expired-secret", "fuzz-nobody", ""] as const;

export interface IngestUnderTest {
  port: number;
  /** All that it has printed so far. */
  output(): string;
  /** Sockets, timers and whatever else the process holds open. */
  countHandles(): Promise<number>;
  /** Accepts an event as it should. */
  isWell(): Promise<boolean>;
  /** Ends it, and resolves with its exit code. */
  stop(): Promise<number | null>;
}

/**
 * Ingest as a process of its own, at the log level that says most.
 *
 * @param options.entry is given to Node; the built ingest by default
 */
export async function startIngestUnderTest(options: {
  redisUrl: string;
  queuePrefix: string;
  entry?: readonly string[];
}): Promise<IngestUnderTest> {
  const folder = await mkdtemp(join(tmpdir(), "booking-events-fuzz-"));
  const partnersFile = join(folder, "partners.json");
  const [valid, expired] = secrets;
  writePartnersFile(partnersFile, [
    partner("fuzz", { [valid]: null, [expired]: "2026-01-02T00:00:00Z" }, { rateLimit: noLimit }),
  ]);
  const [port, adminPort] = [await freePort(), await freePort()];
  const child = spawn(process.execPath, options.entry ?? ["apps/ingest/dist/main.js"], {
    cwd: root,
    env: {
      PATH: process.env["PATH"],
      REDIS_URL: options.redisUrl,
      QUEUE_PREFIX: options.queuePrefix,
      PARTNERS_FILE: partnersFile,
      HOST: "127.0.0.1",
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      LOG_LEVEL: "trace",
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  const isReady = async () => (await fetch(`${adminUrl}/readyz`)).status === 200;
  await waitFor(
    () => {
      if (child.exitCode !== null) throw new Error(`Ingest ended:\n${output}`);
      return isReady();
    },
    { timeoutMs: 30_000 },
  );

  return {
    port,
    output: () => output,
    async countHandles() {
      const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
      return Number(/^nodejs_active_resources_total\{.*\} (\d+)$/m.exec(metrics)?.[1] ?? Number.NaN);
    },
    async isWell() {
      const response = await fetch(`http://127.0.0.1:${port}/booking-event/create/${secrets[0]}`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: '{"consumerTripPartnerExternalReference":"AFTER"}',
      });
      return response.status === 200;
    },
    async stop() {
      const code = await end(child);
      await rm(folder, { recursive: true, force: true });
      return code;
    },
  };
}

async function end(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
  return child.exitCode;
}
