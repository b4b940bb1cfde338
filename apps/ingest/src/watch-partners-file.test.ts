import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@booking-events/scripts/testing";
import { createLogger, createMetrics, type PartnersFile, type Registry } from "@booking-events/service";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { partner } from "./testing/partners.ts";
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

describe("a change of the partners file", () => {
  beforeEach(async () => {
    write({ partners: [partner("acme", { "secret-1": null })] });
    watch = await start();
  });

  test("is in force without a restart", async () => {
    expect(isKnown("secret-1")).toBe(true);
    write({ partners: [partner("acme", { "secret-2": null }), partner("zenith", { "secret-3": null })] });
    await waitFor(() => isKnown("secret-3"));
    expect([isKnown("secret-1"), isKnown("secret-2")]).toEqual([false, true]);
    expect(watch?.problems()).toEqual([]);
    expect(await reloads()).toEqual({ loaded: 1, refused: 0, stale: 0 });
  });

  test.each([
    ["not JSON", "{", "is not JSON"],
    ["empty", "", "is not JSON"],
    ["not what it should be", '{"partners":[{"id":"acme"}]}', "partners.0"],
  ])("to one that is %s leaves the last one in force, until it is valid again", async (_what, text, reason) => {
    writeText(text);
    await waitFor(() => watch?.problems().length === 1);
    expect(watch?.problems()[0]).toContain(path);
    expect(watch?.problems()[0]).toContain(reason);
    expect(isKnown("secret-1")).toBe(true);
    expect(await reloads()).toEqual({ loaded: 0, refused: 1, stale: 1 });

    write({ partners: [partner("acme", { "secret-2": null })] });
    await waitFor(() => isKnown("secret-2"));
    expect(watch?.problems()).toEqual([]);
    expect(await reloads()).toEqual({ loaded: 1, refused: 1, stale: 0 });
  });

  test("by its loss leaves the last one in force, and its return is seen", async () => {
    renameSync(path, `${path}.away`);
    await waitFor(() => watch?.problems().length === 1);
    expect(watch?.problems()[0]).toContain("ENOENT");
    expect(isKnown("secret-1")).toBe(true);
    renameSync(`${path}.away`, path);
    await waitFor(() => watch?.problems().length === 0);
    expect(isKnown("secret-1")).toBe(true);
  });

  test("to no partners at all is a valid one", async () => {
    write({ partners: [] });
    await waitFor(() => !isKnown("secret-1"));
    expect(watch?.problems()).toEqual([]);
  });
});

test("a change by another folder behind a symbolic link, as Kubernetes makes it, is in force without a restart", async () => {
  const mount = (name: string, secret: string) => {
    mkdirSync(join(folder, name));
    writeFileSync(
      join(folder, name, "partners.json"),
      JSON.stringify({ partners: [partner("acme", { [secret]: null })] }),
    );
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

test("a problem that stays is counted once", async () => {
  write({ partners: [] });
  watch = await start();
  writeText("{");
  await waitFor(() => watch?.problems().length === 1);
  // A later change shows that the file was read again since.
  write({ partners: [partner("acme", { "secret-1": null })] });
  await waitFor(() => isKnown("secret-1"));
  expect(await reloads()).toEqual({ loaded: 1, refused: 1, stale: 0 });
});

test("without a valid file there is no start, and the message says what to do", async () => {
  await expect(start()).rejects.toThrow(/partners\.json can't be read \(ENOENT\).*pnpm ops partners add/);
  writeText('{"partners":[{"id":"ACME"}]}');
  await expect(start()).rejects.toThrow(/partners\.json is not valid: .*partners\.0/);
});

function start(): Promise<PartnersFileWatch> {
  // Each start in a registry of its own: a metric has one owner.
  metrics = createMetrics("test");
  return watchPartnersFile({ path, logger: createLogger({ name: "test", level: "silent" }), metrics, intervalMs: 5 });
}

function isKnown(secret: string): boolean {
  return watch?.registry().findSecret(secret) !== undefined;
}

/** At one stroke, as an editor or Kubernetes does it. */
function writeText(text: string): void {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

function write(file: PartnersFile): void {
  writeText(JSON.stringify(file));
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
