import { once } from "node:events";
import { Agent, request } from "node:http";
import type { AddressInfo } from "node:net";
import { partner } from "@booking-events/harness/partners";
import { createApp } from "@booking-events/ingest/app";
import { invalidSecret } from "@booking-events/ingest/http/answers";
import { createConnections } from "@booking-events/ingest/http/connections";
import { createServer } from "@booking-events/ingest/http/create-server";
import type { Partner } from "@booking-events/partners";
import { createPartnerRegistry } from "@booking-events/partners/partner-registry";
import { createLogger, createMetrics } from "@booking-events/runtime";
import { runRounds } from "../rounds.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario, type Section } from "../scenario.ts";
import { quantile } from "../statistics.ts";

/** What is sent as the secret, by why it is refused. The control is as unknown as `unknown`: what they differ by is noise. */
const causes = {
  unknown: "n0-such-secret-of-forty-three-characters-00",
  control: "n0-such-secret-of-forty-three-characters-01",
  expired: "expired-secret-of-forty-three-characters-00",
  disabled: "disabled-secret-of-forty-three-characters-0",
  "wrong kind": "wrong-kind-secret-forty-three-characters-00",
  undecodable: "%E0%A4%A-secret-of-forty-three-characters-0",
} as const;
type Cause = keyof typeof causes;

const requestsPerRound = 2_000;
const manyPartners = 10_000;
/** Short rounds, so that all causes see the same machine. */
const roundsPerRound = 4;

export const authTiming: Scenario = {
  name: "auth-timing",
  about: "does the time of a 403 tell why the secret was refused?",
  async run(bench) {
    return [await compareCauses(bench, 10), await compareCauses(bench, manyPartners)];
  },
};

async function compareCauses(bench: Bench, partnerCount: number): Promise<Section> {
  const title = `403 among ${partnerCount} partners, one request after the other`;
  const { port, close } = await startApp(partnerCount);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const count = bench.isSmoke ? 50 : requestsPerRound;
  const contestant = (cause: Cause) => () => measure({ port, agent, secret: causes[cause], count });
  try {
    const rounds = bench.isSmoke ? 1 : bench.rounds * roundsPerRound;
    const measurements = await runRounds({ ...bench, rounds, say: () => {} }, title, {
      unknown: contestant("unknown"),
      control: contestant("control"),
      expired: contestant("expired"),
      disabled: contestant("disabled"),
      "wrong kind": contestant("wrong kind"),
      undecodable: contestant("undecodable"),
    });
    const others = Object.keys(causes).filter((cause) => cause !== "unknown");
    return { title, measurements, comparisons: others.map((of) => ({ figure: "p50Us", of, to: "unknown" })) };
  } finally {
    agent.destroy();
    await close();
  }
}

async function startApp(partnerCount: number): Promise<{ port: number; close: () => Promise<void> }> {
  const connections = createConnections({ maxConnections: 100, metrics: createMetrics("bench") });
  const app = createApp({
    partners: (() => {
      const registry = createPartnerRegistry({ partners: createPartners(partnerCount) });
      return () => registry;
    })(),
    // As many guesses as it takes.
    answerGuess: () => invalidSecret,
    ...{
      noteAuthentic: () => {},
      noteUse: () => {},
      isOverloaded: () => false,
      wasFrozen: () => false,
      limitPartner: async () => ({ headers: {} }),
      takeTurn: async (_partner, _bytes, work) => work(),
    },
    enqueue: async () => {
      throw new IntegrityError("An event with an invalid secret got to the queue.");
    },
    ...{ isQueueAvailable: () => true, isShuttingDown: () => false, bodyLimitBytes: 65_536, trustedProxyHops: 0 },
    ...{ observe: () => {}, logger: createLogger({ name: "bench", level: "silent" }) },
  });
  const handle = app.callback();
  const { server, stop } = createServer({
    handle(req, res) {
      // So that the connection stays, and none is opened in what is measured.
      connections.noteAuthentic(req.socket);
      void handle(req, res);
    },
    ...{ connections, observe: () => {} },
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, close: stop };
}

function createPartners(count: number): Partner[] {
  return [
    partner("expired", { [causes.expired]: "2026-01-02T00:00:00Z" }),
    partner("disabled", { [causes.disabled]: null }, { enabled: false }),
    partner("wrong-kind", { [causes["wrong kind"]]: null }, { kinds: ["delete"] }),
    ...Array.from({ length: count - 3 }, (_, index) => partner(`partner-${index}`, { [`secret of ${index}`]: null })),
  ];
}

async function measure(options: { port: number; agent: Agent; secret: string; count: number }): Promise<Measurement> {
  const timesUs: number[] = [];
  for (let sent = 0; sent < options.count; sent += 1) {
    const startedAtMs = performance.now();
    const status = await post(options);
    timesUs.push((performance.now() - startedAtMs) * 1_000);
    if (status !== 403) throw new IntegrityError(`A refused secret was answered ${status}.`);
  }
  return { p50Us: quantile(timesUs, 0.5), p90Us: quantile(timesUs, 0.9) };
}

function post({ port, agent, secret }: { port: number; agent: Agent; secret: string }): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const path = `/booking-event/create/${secret}`;
    const sent = request({ host: "127.0.0.1", port, agent, method: "POST", path }, (response) => {
      response.resume();
      response.once("end", () => resolve(response.statusCode));
    });
    sent.once("error", reject);
    sent.end();
  });
}
