import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { stringify } from "yaml";

/** Expects that promtool finds all tests of a suite right. The paths of its rules are absolute. */
export function runPromtool(suite: object): void {
  const folder = mkdtempSync(join(tmpdir(), "booking-events-promtool-"));
  try {
    const path = join(folder, "suite.yml");
    writeFileSync(path, stringify(suite, { lineWidth: 0 }));
    const { status, stdout, stderr } = spawnSync("promtool", ["test", "rules", path], { encoding: "utf8" });
    expect(status, `${stdout}${stderr}`).toBe(0);
  } finally {
    rmSync(folder, { recursive: true });
  }
}
