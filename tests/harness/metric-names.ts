import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
/** Their metrics have the same names but for the name of the app. */
const partnerFacingApps = ["ingest", "lookup"];

/** Returns the names of all metrics that the code and the backup define. */
export function readMetricNames(): string[] {
  const files = globSync("{apps,packages}/*/src/**/*.ts", { cwd: root }).filter((file) => !file.endsWith(".test.ts"));
  const source = files.map((file) => readFileSync(join(root, file), "utf8")).join("\n");
  const names = Array.from(source.matchAll(/name: ["`]([\w.${}]+)["`],\s+help:/g), ([, name = ""]) => name);
  const backup = readFileSync(join(root, "deploy/backup.sh"), "utf8");
  const ofBackup = Array.from(backup.matchAll(/# TYPE (\w+)/g), ([, name = ""]) => name);
  return [...names, ...ofBackup].flatMap((name) => partnerFacingApps.map((app) => name.replace(/\$\{.*\}/, app)));
}
