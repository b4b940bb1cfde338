import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
/** Their metrics have the same names but for the name of the app. */
const partnerFacingApps = ["ingest", "lookup"];

/** Returns the names of all metrics that the code defines. */
export function readMetricNames(): string[] {
  const files = globSync("{apps,packages}/*/src/**/*.ts", { cwd: root }).filter((file) => !file.endsWith(".test.ts"));
  const source = files.map((file) => readFileSync(join(root, file), "utf8")).join("\n");
  const names = Array.from(source.matchAll(/name: ["`]([\w.${}]+)["`],\s+help:/g), ([, name = ""]) => name);
  return names.flatMap((name) => partnerFacingApps.map((app) => name.replace(/\$\{.*\}/, app)));
}
