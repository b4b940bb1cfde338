import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { choosePostgresHome } from "./postgres-home.ts";

const folder = mkdtempSync(join(tmpdir(), "booking-events-home-"));
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

/** Only then do the programs run as another user. */
const isRoot = process.getuid?.() === 0;

test.runIf(isRoot)("programs whose other files are elsewhere, as in Debian, are used as they are", async () => {
  const [programs, dir] = [join(folder, "programs"), join(folder, "data")];
  mkdirSync(dir);
  mkdirSync(join(programs, "bin"), { recursive: true });
  writeFileSync(join(programs, "bin", "initdb"), "#!/bin/sh\n", { mode: 0o755 });
  chmodSync(folder, 0o755);
  vi.stubEnv("POSTGRES_PROGRAMS", programs);
  expect(await choosePostgresHome(dir)).toMatchObject({ programs });
});
