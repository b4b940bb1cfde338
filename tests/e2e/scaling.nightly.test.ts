import { join } from "node:path";
import { freePort, waitFor } from "@booking-events/harness";
import { type Caddy, findCaddy, startCaddy } from "@booking-events/harness/start-caddy";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { type SteadyLoad, startLoad, writeLoadPartners } from "./steady-load.ts";
import { type RunningApp, useOwnServices } from "./surroundings.ts";

const perSecond = 100;
const hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];

const program = await findCaddy(console.log);
const own = useOwnServices("a-secret-of-the-scaling-tests-0123456789");
let [port, adminPort] = [0, 0];
let secretOf: (partner: string) => string;
let caddy: Caddy | undefined;
let load: SteadyLoad | undefined;

beforeAll(async () => {
  const partnersFile = join(own.folder, "load-partners.json");
  secretOf = writeLoadPartners(partnersFile);
  own.environment["PARTNERS_FILE"] = partnersFile;
});

beforeEach(async () => {
  [port, adminPort] = await Promise.all([freePort(), freePort()]);
});

afterEach(async () => {
  await load?.close();
  await caddy?.stop();
});

/** The processes of one app, of which there may be more or fewer. */
function createFleet(start: (index: number) => Promise<RunningApp>) {
  const fleet: RunningApp[] = [];
  return {
    /** All that have run. */
    everyApp: [] as RunningApp[],
    async scaleTo(count: number): Promise<void> {
      while (fleet.length < count) {
        const app = await start(fleet.length);
        this.everyApp.push(app);
        fleet.push(app);
      }
      for (const app of fleet.splice(count)) expect(await app.stop()).toBe(0);
    },
    /** One after the other, each stopped before its successor starts. */
    async restartEach(): Promise<void> {
      for (const [index, app] of fleet.entries()) {
        expect(await app.stop()).toBe(0);
        fleet[index] = await start(index);
        this.everyApp.push(fleet[index]);
      }
    },
  };
}

async function startIngest(index: number): Promise<RunningApp> {
  const host = hosts[index] ?? "";
  const address = { HOST: host, ADMIN_HOST: host, PORT: String(port), ADMIN_PORT: String(adminPort) };
  // As in docker-compose.yml.
  const environment = { ...address, TRUSTED_PROXY_HOPS: "1", SHUTDOWN_DELAY_MS: "3000" };
  const ingest = await own.start("ingest", { environment, isReady: false });
  const isReady = async () => (await fetch(`http://${host}:${adminPort}/readyz`)).ok;
  await waitFor(isReady, { timeoutMs: 30_000 });
  return ingest;
}

test.skipIf(program === undefined)(
  "workers and ingests are scaled and replaced under load, and no partner notices",
  async () => {
    const ingests = createFleet(startIngest);
    const workers = createFleet(() => own.start("worker"));
    await Promise.all([ingests.scaleTo(1), workers.scaleTo(1)]);
    const proxy = await startCaddy(program ?? "", { upstreams: hosts.map((host) => `${host}:${port}`), adminPort });
    caddy = proxy;
    // Caddy takes an ingest for healthy until it has asked it.
    await waitFor(() => hosts.slice(1).every((host) => new RegExp(`"host":"${host}:`).test(proxy.output())));
    const { environment } = own;
    const ingestUrls = [`https://localhost:${proxy.httpsPort}`];
    load = startLoad({ ingestUrls, authority: proxy.authority, secretOf, environment, perSecond });
    const untilMore = (count: number) => {
      const target = (load?.countAcknowledged() ?? 0) + count;
      return waitFor(() => (load?.countAcknowledged() ?? 0) >= target, { timeoutMs: 60_000 });
    };

    await untilMore(200);
    await Promise.all([workers.scaleTo(4), ingests.scaleTo(3)]);
    await untilMore(200);
    await workers.restartEach();
    await ingests.restartEach();
    await untilMore(200);
    await Promise.all([workers.scaleTo(1), ingests.scaleTo(1)]);
    await untilMore(200);
    await load.stop();

    const { tally, violations } = await load.judge();
    expect(violations).toEqual([]);
    expect(load.posts.flatMap(({ attempts }) => attempts).filter(({ status }) => status !== 200)).toEqual([]);
    const count = load.posts.length;
    expect(tally).toMatchObject({ attempted: count, requests: count, acknowledged: count, applied: count });
    for (const ingest of ingests.everyApp) expect(ingest.output()).toContain('"outcome":"accepted"');
  },
  300_000,
);
