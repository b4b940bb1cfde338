import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const run = promisify(execFile);

test("npm run check:containers", { timeout: 1_800_000 }, async ({ skip }) => {
  const { stdout } = await run("npm", ["run", "--silent", "check:containers"]);
  console.log(stdout);
  const reason = /^Skipped: .*$/m.exec(stdout)?.[0];
  // In CI, nobody would notice.
  if (reason !== undefined && !("CI" in process.env)) skip(reason);
  expect(stdout).toMatch(/^ok .* down with standbys$/m);
});
