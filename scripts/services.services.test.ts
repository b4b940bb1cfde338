import { execFile, execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import pg from "pg";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { choosePostgresHome } from "./postgres-home.ts";
import { recordProcess } from "./process-record.ts";
import { type DataServer, startPostgres, startRedis } from "./services.ts";

let dir: string;
/** Holds a cluster. To create one takes more than a second of CPU, so most tests begin with a copy of it. */
let created: string;
const started: DataServer[] = [];

beforeAll(async () => {
  created = createFolder();
  const server = await startPostgres({ dir: created });
  await server.stop();
});

afterAll(() => rmSync(created, { recursive: true, force: true }));

beforeEach(() => {
  dir = createFolder();
});

afterEach(async () => {
  await Promise.all(started.splice(0).map((server) => server.stop()));
  rmSync(dir, { recursive: true, force: true });
});

function createFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "services-"));
  chmodSync(folder, 0o711);
  return folder;
}

function copyCreated(to: string): void {
  mkdirSync(to, { recursive: true });
  for (const name of ["data", "password"]) execFileSync("cp", ["-a", join(created, name), to]);
}

interface Kind {
  name: string;
  /** Gives it data, so that its start need not. */
  prepare: (dir: string) => void;
  start: (dir: string, port?: number) => Promise<DataServer>;
  write: (url: string, value: string) => Promise<void>;
  read: (url: string) => Promise<string | null>;
}

const redis: Kind = {
  name: "Redis",
  prepare: () => {},
  start: (at, port) => track(startRedis({ dir: at, ...(port === undefined ? {} : { port }) })),
  write: (url, value) => withRedis(url, async (client) => void (await client.set("key", value))),
  read: (url) => withRedis(url, (client) => client.get("key")),
};

const postgres: Kind = {
  name: "PostgreSQL",
  prepare: copyCreated,
  start: (at, port) => track(startPostgres({ dir: at, ...(port === undefined ? {} : { port }) })),
  write: (url, value) =>
    withPostgres(url, async (client) => {
      await client.query("create table if not exists kept (value text)");
      await client.query("insert into kept values ($1)", [value]);
    }),
  read: (url) => withPostgres(url, async (client) => (await client.query("select value from kept")).rows[0].value),
};

describe.each([redis, postgres])("$name", ({ prepare, start, write, read }) => {
  test("keeps its data and its port when it is stopped, killed or frozen, and answers only on loopback", async () => {
    prepare(dir);
    const first = await start(dir);
    await write(first.url, "kept");
    await first.stop();
    expect(recordProcess(first.pid)).toBeUndefined();
    const second = await start(dir);
    expect(second.url).toBe(first.url);
    expect(new URL(second.url).hostname).toBe("127.0.0.1");
    expect(statSync(join(dir, "password")).mode & 0o777).toBe(0o600);

    const { pid } = second;
    second.kill("SIGKILL");
    await second.ended();
    await second.restart();
    expect(second.pid).not.toBe(pid);
    expect(await read(second.url)).toBe("kept");

    second.kill("SIGSTOP");
    second.kill("SIGCONT");
    expect(await read(second.url)).toBe("kept");
    second.kill("SIGSTOP");
    await second.stop();
    expect(recordProcess(second.pid)).toBeUndefined();
  });

  test("the next start after a killed one stops its server, and finds the data", async () => {
    prepare(dir);
    const { url, pid } = await startInProcessThatIsKilled(start === redis.start ? "startRedis" : "startPostgres");
    expect(recordProcess(pid)).toBeDefined();
    await write(url, "kept");
    const next = await start(dir);
    expect(recordProcess(pid)).toBeUndefined();
    expect(await read(next.url)).toBe("kept");
  });

  test("a copy of the directory does not touch the server of the original", async () => {
    prepare(join(dir, "original"));
    const original = await start(join(dir, "original"));
    await write(original.url, "kept");
    cpSync(join(dir, "original"), join(dir, "copy"), { recursive: true });
    // A copy of live data is damaged.
    rmSync(join(dir, "copy", "data"), { recursive: true, force: true });
    prepare(join(dir, "copy"));
    const copy = await start(join(dir, "copy"));
    expect(copy.port).not.toBe(original.port);
    expect(await read(original.url)).toBe("kept");
  });

  test("a port that is taken is reported, with the server's own words", async () => {
    for (const name of ["first", "second"]) prepare(join(dir, name));
    const first = await start(join(dir, "first"));
    await expect(start(join(dir, "second"), first.port)).rejects.toThrow(/ended by itself.*[Aa]ddress already in use/s);
  });
});

test("Redis is durable and never evicts", async () => {
  const { url } = await redis.start(dir);
  const settings = await withRedis(url, (client) => client.config("GET", "append*", "maxmemory-policy", "save"));
  expect(settings).toEqual(expect.arrayContaining(["appendonly", "yes", "appendfsync", "always", "noeviction"]));
});

test("PostgreSQL starts although its lock file names a process, which is another program by now", async () => {
  copyCreated(dir);
  const first = await startPostgres({ dir });
  started.push(first);
  await postgres.write(first.url, "kept");
  const lock = join(first.home, "data", "postmaster.pid");
  const text = readFileSync(lock, "utf8");
  first.kill("SIGKILL");
  await first.ended();
  writeFileSync(lock, text.replace(/^\d+/, String(process.pid)));
  expect(await postgres.read((await postgres.start(dir)).url)).toBe("kept");
});

test("PostgreSQL starts although it lets nobody in for seconds", async () => {
  copyCreated(dir);
  const server = await track(startPostgres({ dir, settings: { post_auth_delay: "3" } }));
  expect(server.url).toMatch(/^postgres:/);
});

test("a PostgreSQL cluster whose creation was interrupted is created again", async () => {
  const home = await choosePostgresHome(dir);
  const unfinished = join(home.dir, "data.unfinished");
  mkdirSync(unfinished);
  writeFileSync(join(unfinished, "PG_VERSION"), "18\n");
  await postgres.write((await postgres.start(dir)).url, "works");
  expect(existsSync(unfinished)).toBe(false);
});

async function track(start: Promise<DataServer>): Promise<DataServer> {
  const server = await start;
  started.push(server);
  return server;
}

function startInProcessThatIsKilled(starter: string): Promise<{ url: string; pid: number }> {
  const services = JSON.stringify(join(import.meta.dirname, "services.ts"));
  const code = `
    const { ${starter} } = await import(${services});
    const { url, pid } = await ${starter}({ dir: ${JSON.stringify(dir)} });
    process.stdout.write(JSON.stringify({ url, pid }), () => process.kill(process.pid, "SIGKILL"));`;
  return new Promise((resolve) => {
    execFile(process.execPath, ["--input-type=module", "-e", code], (_killed, stdout) => resolve(JSON.parse(stdout)));
  });
}

async function withRedis<Result>(url: string, work: (client: Redis) => Promise<Result>): Promise<Result> {
  const client = new Redis(url);
  try {
    return await work(client);
  } finally {
    client.disconnect();
  }
}

async function withPostgres<Result>(url: string, work: (client: pg.Client) => Promise<Result>): Promise<Result> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
