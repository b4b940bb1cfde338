import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { partner } from "@booking-events/harness/partners";
import { writePartnersFile } from "@booking-events/harness/partners-file";
import { createLogger, createMetrics, type Registry } from "@booking-events/runtime";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type ReadText, readRegularFile } from "./read-regular-file.ts";
import { type PartnersFileWatch, watchPartnersFile } from "./watch-partners-file.ts";

let folder: string;
let path: string;
let metrics: Registry;
let watch: PartnersFileWatch | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "booking-events-partners-"));
  path = join(folder, "partners.json");
  metrics = createMetrics("test");
});

afterEach(() => {
  watch?.stop();
  rmSync(folder, { recursive: true });
});

describe("a change to the partners file", () => {
  beforeEach(async () => {
    writePartnersFile(path, [partner("acme", { "secret-1": null })]);
    watch = await start();
  });

  test("applies without a restart", async () => {
    expect(isKnown("secret-1")).toBe(true);
    writePartnersFile(path, [partner("acme", { "secret-2": null }), partner("zenith", { "secret-3": null })]);
    await waitFor(() => isKnown("secret-3"));
    expect([isKnown("secret-1"), isKnown("secret-2")]).toEqual([false, true]);
    expect(watch?.warnings()).toEqual([]);
    expect(await reloads()).toEqual({ loaded: 1, refused: 0, stale: 0 });
  });

  test.each([
    ["not JSON", "{", "is not JSON"],
    ["empty", "", "is not JSON"],
    ["not valid", '{"partners":[{"id":"acme"}]}', "partners.0"],
  ])("to one that is %s keeps the last valid one in use until it is valid again", async (_what, text, reason) => {
    writeText(text);
    await waitFor(() => watch?.warnings().length === 1);
    expect(watch?.warnings()[0]).toContain(path);
    expect(watch?.warnings()[0]).toContain(reason);
    expect(isKnown("secret-1")).toBe(true);
    expect(await reloads()).toEqual({ loaded: 0, refused: 1, stale: 1 });

    writePartnersFile(path, [partner("acme", { "secret-2": null })]);
    await waitFor(() => isKnown("secret-2"));
    expect(watch?.warnings()).toEqual([]);
    expect(await reloads()).toEqual({ loaded: 1, refused: 1, stale: 0 });
  });

  test("by an editor that adds a byte order mark applies", async () => {
    writeText(`\ufeff${JSON.stringify({ partners: [partner("acme", { "secret-2": null })] })}`);
    await waitFor(() => isKnown("secret-2"));
    expect(watch?.warnings()).toEqual([]);
  });

  test("that removes it keeps the last one in use, and its return is noticed", async () => {
    renameSync(path, `${path}.away`);
    await waitFor(() => watch?.warnings().length === 1);
    expect(watch?.warnings()[0]).toContain("ENOENT");
    expect(isKnown("secret-1")).toBe(true);
    renameSync(`${path}.away`, path);
    await waitFor(() => watch?.warnings().length === 0);
    expect(isKnown("secret-1")).toBe(true);
  });

  test("that leaves no partners is valid, and reported as a problem", async () => {
    expect(watch?.problems()).toEqual([]);
    writePartnersFile(path, []);
    await waitFor(() => !isKnown("secret-1"));
    expect(watch?.warnings()).toEqual([]);
    expect(watch?.problems()).toEqual([expect.stringContaining("has no partners")]);
  });
});

test("a change of the folder behind a symbolic link, as in Kubernetes, applies without a restart", async () => {
  const mount = (name: string, secret: string) => {
    mkdirSync(join(folder, name));
    writePartnersFile(join(folder, name, "partners.json"), [partner("acme", { [secret]: null })]);
    symlinkSync(name, join(folder, "..data_tmp"));
    renameSync(join(folder, "..data_tmp"), join(folder, "..data"));
  };
  mount("..2026_1", "secret-1");
  symlinkSync(join("..data", "partners.json"), path);
  watch = await start();
  expect(isKnown("secret-1")).toBe(true);
  mount("..2026_2", "secret-2");
  rmSync(join(folder, "..2026_1"), { recursive: true });
  await waitFor(() => isKnown("secret-2"));
  expect(isKnown("secret-1")).toBe(false);
  expect(await reloads()).toEqual({ loaded: 1, refused: 0, stale: 0 });
});

test("a persisting problem is counted once", async () => {
  writePartnersFile(path, [partner("acme", {})]);
  watch = await start();
  writeText("{");
  await waitFor(() => watch?.warnings().length === 1);
  // A later change shows that the file has been read again.
  writePartnersFile(path, [partner("acme", { "secret-1": null })]);
  await waitFor(() => isKnown("secret-1"));
  expect(await reloads()).toEqual({ loaded: 1, refused: 1, stale: 0 });
});

test("without a valid file there are no partners, and the reported problem says what to do", async () => {
  watch = await start();
  expect(watch.registry().partnerCount).toBe(0);
  expect(watch.problems()).toEqual([
    expect.stringMatching(/partners\.json cannot be read \(ENOENT\).*ops partners add/),
  ]);
  expect(watch.warnings()).toEqual([]);
  writeText('{"partners":[{"id":"ACME"}]}');
  await waitFor(() => expect(watch?.problems()).toEqual([expect.stringMatching(/is not valid: .*partners\.0/)]));
  writePartnersFile(path, [partner("acme", { "secret-1": null })]);
  await waitFor(() => isKnown("secret-1"));
  expect(watch.problems()).toEqual([]);
});

test.each<[string, () => unknown]>([
  ["a directory", () => mkdirSync(path)],
  ["a pipe without a writer", () => execFileSync("mkfifo", [path])],
])("%s in place of the file is not read, and reported", async (_what, make) => {
  make();
  watch = await start();
  expect(watch.problems()).toEqual([expect.stringContaining("it is not a regular file")]);
});

describe("a read that hangs, as when a network file system's server is unreachable", () => {
  const hangs: ReadText = () => new Promise(() => {});

  test("is abandoned, and later changes are noticed", async () => {
    writePartnersFile(path, [partner("acme", { "secret-1": null })]);
    const reads = [hangs];
    watch = await start({ readLimitMs: 5, readText: (path) => (reads.shift() ?? readRegularFile)(path) });
    expect(watch.problems()).toEqual([expect.stringContaining("no end after 5 ms")]);
    await waitFor(() => isKnown("secret-1"));
    expect(watch.problems()).toEqual([]);
  });

  test("keeps the last valid version in use, and does not block all threads that read files", async () => {
    writePartnersFile(path, [partner("acme", { "secret-1": null })]);
    let hung = 0;
    let asked = 0;
    const readText: ReadText = (path) => {
      asked += 1;
      // Not a real read, which may take longer than the limit on a busy machine.
      if (asked === 1) return Promise.resolve(readFileSync(path, "utf8"));
      hung += 1;
      return hangs(path);
    };
    watch = await start({ readLimitMs: 5, readText });
    await waitFor(() => expect(watch?.warnings()).toEqual([expect.stringContaining("no end")]));
    await waitFor(() => hung === 2);
    // Enough time for a third read.
    await wait(50);
    expect(hung).toBe(2);
    expect(isKnown("secret-1")).toBe(true);
  });

  test("does not prevent the process from exiting", async () => {
    execFileSync("mkfifo", [path]);
    const child = spawn(process.execPath, [
      ...["--conditions=@booking-events/source", "--disable-warning=ExperimentalWarning"],
      ...[join(import.meta.dirname, "testing/exit-while-reading.ts"), path],
    ]);
    const [code, signal] = await once(child, "close");
    expect([code, signal]).toEqual([null, "SIGKILL"]);
  });
});

function start(more: { readLimitMs?: number; readText?: ReadText } = {}): Promise<PartnersFileWatch> {
  // Each watch has its own registry, because a metric can be registered only once.
  metrics = createMetrics("test");
  const logger = createLogger({ name: "test", level: "silent" });
  return watchPartnersFile({ app: "ingest", path, logger, metrics, intervalMs: 5, ...more });
}

function isKnown(secret: string): boolean {
  return watch?.registry().findSecret(secret) !== undefined;
}

/** Replaces the file atomically, as an editor or Kubernetes does. */
function writeText(text: string): void {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

async function reloads(): Promise<{ loaded: number; refused: number; stale: number }> {
  const text = await metrics.metrics();
  const countOf = (pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? 0);
  return {
    loaded: countOf(/^ingest_partners_file_reloads_total\{.*result="loaded".*\} (\d+)$/m),
    refused: countOf(/^ingest_partners_file_reloads_total\{.*result="refused".*\} (\d+)$/m),
    stale: countOf(/^ingest_partners_file_stale\{.*\} (\d+)$/m),
  };
}
