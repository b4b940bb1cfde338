import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { uniquePrefix, waitFor } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { migrate } from "@booking-events/store";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { postOnce } from "./post-event.ts";
import { emptyTables, type RunningApp, useOwnServices } from "./surroundings.ts";

const secret = "a-secret-of-the-outage-tests-0123456789";
/** How long a test waits for a recovery. It asserts no time. */
const recovery = { timeoutMs: 60_000 };

const own = useOwnServices(secret, { max_connections: "20", superuser_reserved_connections: "3" });
let redisAdmin: Redis;

beforeAll(async () => {
  redisAdmin = new Redis(own.redis.url, { maxRetriesPerRequest: null });
  redisAdmin.on("error", () => {});
  await migrate(own.postgres.url);
  // Not the administrator, for whom PostgreSQL reserves some connections.
  await own.pool.query("create role service login password 'service'");
  for (const schema of ["public", "public_test_partners"])
    await own.pool.query(
      `grant usage on schema ${schema} to service; grant all on all tables in schema ${schema} to service;
       grant usage on all sequences in schema ${schema} to service`,
    );
  const serviceUrl = Object.assign(new URL(own.postgres.url), { username: "service", password: "service" });
  own.environment["DATABASE_URL"] = serviceUrl.href;
});

beforeEach(() => emptyTables(own.pool));

afterAll(() => redisAdmin.disconnect());

/** The same processes survive every outage of these tests, one after the other. */
function runBoth(): Promise<[RunningApp, RunningApp]> {
  return Promise.all([own.running("ingest"), own.running("worker")]);
}

/** Starts processes that share no event with the ones above. */
function onQueueOfItsOwn() {
  const environment = { QUEUE_PREFIX: uniquePrefix() };
  return (name: "ingest" | "worker", more: { isReady?: false } = {}) => own.start(name, { environment, ...more });
}

/** What a process has logged since a point in a test. */
function logSince(app: RunningApp): () => Record<string, unknown>[] {
  const linesBefore = app.logLines().length;
  return () => app.logLines().slice(linesBefore);
}

function post(ingest: RunningApp, reference: string): Promise<Response> {
  return postOnce(ingest, { secret, reference });
}

async function untilAccepted(ingest: RunningApp, reference: string): Promise<void> {
  await waitFor(async () => expect((await post(ingest, reference)).status).toBe(200), recovery);
}

async function untilApplied(reference: string): Promise<void> {
  await waitFor(async () => {
    const { rowCount } = await own.pool.query("select 1 from bookings where reference = $1", [reference]);
    expect(rowCount).toBe(1);
  }, recovery);
}

async function expectUnavailable(ingest: RunningApp): Promise<void> {
  const response = await post(ingest, "REFUSED");
  expect(response.status).toBe(503);
  expect(Number(response.headers.get("retry-after"))).toBeGreaterThan(0);
  expect(await response.json()).toEqual({
    message: expect.stringContaining("Retry the same request"),
    // Ingest may notice first that Redis has no memory left.
    code: expect.stringMatching(/^(queue-unavailable|overloaded)$/),
  });
}

test("PostgreSQL may lose what it commits: the worker is not ready and says so, and applies events all the same", async () => {
  const [ingest, worker] = await runBoth();
  const logged = logSince(worker);
  const setFsync = async (change: string) => {
    await execute(own.postgres.url, `alter system ${change}`);
    await own.pool.query("select pg_reload_conf()");
  };
  await setFsync("set fsync = off");
  try {
    await waitFor(async () => {
      const problem = "PostgreSQL may lose committed data: fsync is off. Set: fsync = on.";
      expect(await worker.readiness()).toEqual({ status: 503, body: { ready: false, problems: [problem] } });
    }, recovery);
    await waitFor(() =>
      expect(logged()).toContainEqual(expect.objectContaining({ level: "error", problems: expect.any(Array) })),
    );
    await untilAccepted(ingest, "AT-RISK");
    await untilApplied("AT-RISK");
    await waitFor(() => expect(logged()).toContainEqual(expect.objectContaining({ msg: "event applied" })));
  } finally {
    await setFsync("reset fsync");
  }
  await waitFor(async () => expect((await worker.readiness()).status).toBe(200), recovery);
});

describe("PostgreSQL out: the worker waits, says so, and loses no attempt", () => {
  const outages: [name: string, begin: (worker: RunningApp) => Promise<unknown>, end: () => Promise<unknown>][] = [
    [
      "killed",
      async () => {
        own.postgres.kill("SIGKILL");
        await own.postgres.ended();
      },
      () => own.postgres.restart(),
    ],
    [
      "frozen, which keeps no probe waiting, even before an event has failed",
      async (worker) => {
        own.postgres.kill("SIGSTOP");
        const { status, body } = await worker.readiness();
        expect(status).toBe(503);
        // A probe that waits for PostgreSQL ends with the code of an error instead.
        expect(body.problems?.join()).toContain("PostgreSQL does not answer (no answer)");
      },
      async () => own.postgres.kill("SIGCONT"),
    ],
    [
      "read-only",
      () => setForService("default_transaction_read_only = on"),
      () => setForService("default_transaction_read_only = off"),
    ],
    ["refusing connections", () => setForService("connection limit 0"), () => setForService("connection limit -1")],
  ];

  /** Applies to new sessions; ends the existing ones. */
  async function setForService(setting: string): Promise<void> {
    const change = setting.startsWith("connection limit")
      ? `alter role service ${setting}`
      : `alter role service set ${setting}`;
    await own.pool.query(change);
    await own.pool.query("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'service'");
  }

  test.each(outages)("%s", async (_, begin, end) => {
    const [ingest, worker] = await runBoth();
    const logged = logSince(worker);
    await untilAccepted(ingest, "BEFORE");
    await untilApplied("BEFORE");

    try {
      await begin(worker);
      for (const reference of ["DURING-1", "DURING-2", "DURING-3"]) await untilAccepted(ingest, reference);
      await untilUnready(worker);
      const metrics = await (await fetch(`${worker.adminUrl}/metrics`)).text();
      expect(metrics).toMatch(/^booking_events_database_up\{.*\} 0$/m);
    } finally {
      await end();
    }

    for (const reference of ["DURING-1", "DURING-2", "DURING-3"]) await untilApplied(reference);
    await waitFor(async () => expect((await worker.readiness()).status).toBe(200), recovery);
    const appliedAttempts = () => logged().flatMap(({ msg, attempt }) => (msg === "event applied" ? [attempt] : []));
    // Logged after the commit, so the bookings may be visible earlier.
    await waitFor(() => expect(appliedAttempts()).toEqual([1, 1, 1, 1]));
    expect(logged().filter(({ msg }) => String(msg).startsWith("PostgreSQL is unavailable"))).toHaveLength(1);
    expect((await own.pool.query("select 1 from dead_letters")).rowCount).toBe(0);
  });

  /** Starts it again even if the test fails, for those that follow. */
  async function withoutPostgres(test: () => Promise<void>): Promise<void> {
    own.postgres.kill("SIGKILL");
    await own.postgres.ended();
    try {
      await test();
    } finally {
      await own.postgres.restart();
    }
  }

  async function untilUnready(worker: RunningApp): Promise<void> {
    await waitFor(async () => {
      const { status, body } = await worker.readiness();
      expect(status).toBe(503);
      expect(body.problems?.join()).toMatch(/PostgreSQL is unavailable/);
    }, recovery);
  }

  test("a worker that starts while it is out migrates and applies when it is back", async () => {
    const start = onQueueOfItsOwn();
    const ingest = await start("ingest");
    await untilAccepted(ingest, "EARLY");
    await withoutPostgres(async () => untilUnready(await start("worker", { isReady: false })));
    await untilApplied("EARLY");
  });

  test("a worker that is stopped meanwhile shuts down cleanly, and another applies the event", async () => {
    const start = onQueueOfItsOwn();
    const [ingest, worker] = await Promise.all([start("ingest"), start("worker")]);
    await withoutPostgres(async () => {
      await untilAccepted(ingest, "HANDED-OVER");
      await untilUnready(worker);
      expect(await worker.stop("SIGTERM")).toBe(0);
    });
    const next = await start("worker");
    await untilApplied("HANDED-OVER");
    // Logged after the commit, so the booking may be visible earlier.
    await waitFor(() =>
      expect(next.logLines().find(({ msg }) => msg === "event applied")).toMatchObject({ attempt: 1 }),
    );
  });
});

describe("one booking in trouble keeps no other waiting", () => {
  const others = ["OTHER-1", "OTHER-2", "OTHER-3"];

  /** The worker must not think that PostgreSQL is unavailable. */
  async function expectReady(worker: RunningApp, logged: () => Record<string, unknown>[]): Promise<void> {
    expect(await worker.readiness()).toMatchObject({ status: 200 });
    expect(logged().filter(({ msg }) => String(msg).startsWith("PostgreSQL is unavailable"))).toEqual([]);
  }

  test("because PostgreSQL cancels what is done for it: it is tried again later", async () => {
    const [ingest, worker] = await runBoth();
    const logged = logSince(worker);
    await own.pool.query(`
      create function cancel() returns trigger language plpgsql as
        $$ begin raise exception 'cancelled' using errcode = '57014'; end $$;
      create trigger cancel before insert on booking_events
        for each row when (new.reference = 'TROUBLE') execute function cancel()`);
    try {
      for (const reference of ["TROUBLE", ...others]) await untilAccepted(ingest, reference);
      for (const reference of others) await untilApplied(reference);
      await waitFor(() =>
        expect(logged()).toContainEqual(expect.objectContaining({ msg: "attempt failed", code: "57014" })),
      );
      await expectReady(worker, logged);
    } finally {
      await own.pool.query("drop trigger cancel on booking_events; drop function cancel");
    }
    await untilApplied("TROUBLE");
    expect((await own.pool.query("select 1 from dead_letters")).rowCount).toBe(0);
  });

  test("because somebody keeps its row locked: it is tried again when that is over", async () => {
    const [ingest, worker] = await runBoth();
    const logged = logSince(worker);
    await untilAccepted(ingest, "TROUBLE");
    await untilApplied("TROUBLE");
    const holder = await own.pool.connect();
    await holder.query("begin");
    await holder.query("select from bookings where reference = 'TROUBLE' for update");
    for (const reference of ["TROUBLE", ...others]) await untilAccepted(ingest, reference);
    for (const reference of others) await untilApplied(reference);
    await waitFor(
      () => expect(logged()).toContainEqual(expect.objectContaining({ msg: "attempt failed", code: "55P03" })),
      recovery,
    );
    await expectReady(worker, logged);
    await holder.query("rollback");
    holder.release();
    await waitFor(async () => {
      const { rowCount } = await own.pool.query("select 1 from booking_events where reference = 'TROUBLE'");
      expect(rowCount).toBe(2);
    }, recovery);
  });
});

describe("Redis out: ingest answers 503 with Retry-After, and recovers by itself", () => {
  const outages: [name: string, begin: () => Promise<unknown>, end: () => Promise<unknown>][] = [
    [
      "killed",
      async () => {
        own.redis.kill("SIGKILL");
        await own.redis.ended();
      },
      () => own.redis.restart(),
    ],
    ["frozen", async () => own.redis.kill("SIGSTOP"), async () => own.redis.kill("SIGCONT")],
    ["a read-only replica", () => redisAdmin.replicaof("127.0.0.1", "1"), () => redisAdmin.replicaof("NO", "ONE")],
    [
      "out of memory",
      () => redisAdmin.config("SET", "maxmemory", "1"),
      () => redisAdmin.config("SET", "maxmemory", "0"),
    ],
    [
      "without an append-only file",
      () => redisAdmin.config("SET", "appendonly", "no"),
      () => redisAdmin.config("SET", "appendonly", "yes"),
    ],
    [
      "unable to save (MISCONF)",
      async () => {
        // A snapshot that can't be written, and a rule that stops writes because of it.
        await breakSnapshots();
        await redisAdmin.config("SET", "save", "1 1");
      },
      async () => {
        await redisAdmin.config("SET", "save", "");
      },
    ],
  ];

  async function breakSnapshots(): Promise<void> {
    // Redis can't rename its snapshot to this: a folder has that name, instead of a snapshot from an earlier test.
    const snapshot = join(own.folder, "redis", "dump.rdb");
    await rm(snapshot, { recursive: true, force: true });
    await mkdir(join(snapshot, "in-the-way"), { recursive: true });
    await redisAdmin.bgsave().catch(() => {});
    await waitFor(
      async () => expect(await redisAdmin.info("persistence")).toMatch(/rdb_last_bgsave_status:err/),
      recovery,
    );
  }

  test.each(outages)("%s", async (_, begin, end) => {
    const [ingest, worker] = await runBoth();
    await untilAccepted(ingest, "BEFORE");
    await untilApplied("BEFORE");

    await begin();
    try {
      await waitFor(async () => expect((await post(ingest, "DURING")).status).toBe(503), recovery);
      await expectUnavailable(ingest);
    } finally {
      await end();
    }

    await untilAccepted(ingest, "AFTER");
    await untilApplied("AFTER");
    await waitFor(async () => expect((await ingest.readiness()).status).toBe(200), recovery);
    await waitFor(async () => expect((await worker.readiness()).status).toBe(200), recovery);
  });

  test("at the start of both: they start, say so, and work when it is there", async () => {
    own.redis.kill("SIGKILL");
    await own.redis.ended();
    const start = onQueueOfItsOwn();
    const [ingest, worker] = await Promise.all([
      start("ingest", { isReady: false }),
      start("worker", { isReady: false }),
    ]);
    for (const app of [ingest, worker]) {
      await waitFor(
        async () =>
          expect((await app.readiness()).body.problems?.join()).toMatch(/Redis does not answer \(ECONNREFUSED\)/),
        recovery,
      );
    }
    await expectUnavailable(ingest);
    await own.redis.restart();
    await untilAccepted(ingest, "LATER");
    await untilApplied("LATER");
  });

  test("wiped: new events are applied after the old ones", async () => {
    const [ingest] = await runBoth();
    await untilAccepted(ingest, "BEFORE");
    await untilApplied("BEFORE");
    await redisAdmin.flushall();
    await untilAccepted(ingest, "AFTER");
    await untilApplied("AFTER");
    const { rows } = await own.pool.query("select reference from booking_events order by sequence");
    expect(rows.map(({ reference }) => reference)).toEqual(["BEFORE", "AFTER"]);
  });
});
