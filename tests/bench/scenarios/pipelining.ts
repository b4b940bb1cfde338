import type { ChildProcess } from "node:child_process";
import { builtApps, fromSource, spawnApp } from "@booking-events/harness/app-process";
import { waitFor } from "@booking-events/harness/wait-for";
import { applyLoad } from "../load.ts";
import { openSteadyPartner } from "../post-steadily.ts";
import { newQueuePrefix, type ProcessUnderTest, startIngest } from "../process-under-test.ts";
import { runRounds } from "../rounds.ts";
import { bodies } from "../sample-events.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario, type Section } from "../scenario.ts";

const rate = 100;

export const pipelining: Scenario = {
  name: "pipelining",
  about: "a partner's p99 while strangers send thousands of requests at once on each connection",
  async run(bench) {
    return [await compare(bench, "10 open connections", 10), await compare(bench, "new connections", 0)];
  },
};

/** @param connections that the partner keeps open; 0: each of its requests gets a new one, behind those of the strangers */
async function compare(bench: Bench, where: string, connections: number): Promise<Section> {
  const title = `pipelining, ${rate} events/s on ${where}, while 200 others send 256 KiB of GET /x each`;
  const measurements = await runRounds(bench, title, {
    alone: () => measure(bench, connections),
    "they read the answers": () => measure(bench, connections, { READS: "true" }),
    "they never read": () => measure(bench, connections, { READS: "false" }),
  });
  const comparisons = ["they read the answers", "they never read"].flatMap((of) => [
    { figure: "eventsPerSecond" as const, of, to: "alone", atLeast: 0.9 },
    { figure: "p99Ms" as const, of, to: "alone" },
  ]);
  return { title, measurements, comparisons };
}

async function measure(bench: Bench, connections: number, attack?: { READS: string }): Promise<Measurement> {
  const ingest = await startIngest(bench, builtApps.ingest, newQueuePrefix());
  const load = { url: ingest.createUrl, ...bodies.JSON, connections, rate };
  let attacker: ChildProcess | undefined;
  try {
    await applyLoad({ ...load, connections: 10, durationMs: bench.warmUpMs });
    const partner = await openSteadyPartner(load);
    if (attack !== undefined) {
      attacker = startAttack(ingest, attack);
      await waitFor(() => isAttacked(ingest), { timeoutMs: 30_000 });
    }
    const { acceptedPerSecond: eventsPerSecond, ...latency } = await partner.post(bench.measureMs);
    partner.close();
    if (attacker !== undefined && attacker.exitCode !== null) throw new IntegrityError("The attack ended early.");
    return { eventsPerSecond, ...latency };
  } finally {
    attacker?.kill("SIGKILL");
    await ingest.stop();
    await bench.services.emptyRedis();
  }
}

/** Strangers have their own machines. Here they get the CPU time that the partner and Redis leave. */
function startAttack({ port }: ProcessUnderTest, environment: { READS: string }): ChildProcess {
  const program = fromSource("tests/bench/pipelining-attack.ts");
  return spawnApp(program, { PORT: String(port), ...environment }, { wrapper: ["nice", "-n", "19"], stdio: "ignore" });
}

async function isAttacked(ingest: ProcessUnderTest): Promise<boolean> {
  return /^ingest_requests_total\{.*status="404".*\} [1-9]/m.test(await ingest.metrics());
}
