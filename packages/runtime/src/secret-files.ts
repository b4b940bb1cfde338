import { readFileSync } from "node:fs";

/** Variables that hold a secret, or a URL that may. Each may stand in a file instead, which `<name>_FILE` names. */
const secretVariables = [
  "REDIS_URL",
  "REDIS_PASSWORD",
  "REDIS_SENTINEL_PASSWORD",
  "DATABASE_URL",
  "DATABASE_PASSWORD",
  "WORKER_DATABASE_PASSWORD",
  "LOOKUP_DATABASE_PASSWORD",
  "WEBHOOKS_DATABASE_PASSWORD",
  "OPS_DATABASE_PASSWORD",
  "CONSOLE_DATABASE_PASSWORD",
  "EXPORTER_DATABASE_PASSWORD",
  "WEBHOOKS_PROXY_URL",
  "DIGEST_KEY",
  "CONSOLE_PASSWORD",
  "CONSOLE_SESSION_KEY",
  "CONSOLE_OIDC_CLIENT_SECRET",
];

/**
 * Reads the files of secrets that are given, as Docker and Kubernetes mount them.
 *
 * @param names the variables that the process reads; it opens no other file
 * @returns `values` by variable, without the line break at the end that editors and `echo` write; `faults` by variable: why its
 *   file can't be used, without its content
 */
export function readSecretFiles(
  names: Iterable<string>,
  given: Record<string, string | undefined>,
): { values: Record<string, string>; faults: Map<string, string> } {
  const values: Record<string, string> = {};
  const faults = new Map<string, string>();
  const read = new Set(names);
  for (const name of secretVariables) {
    const path = given[`${name}_FILE`];
    if (path === undefined || !read.has(name)) continue;
    if (given[name] !== undefined) {
      faults.set(name, `${name} and ${name}_FILE are both set: remove one of them`);
      continue;
    }
    try {
      values[name] = readFileSync(path, "utf8").replace(/\r?\n$/, "");
      if (values[name] === "") faults.set(name, `${name}_FILE names an empty file`);
    } catch (error) {
      faults.set(name, `${name}_FILE names a file that cannot be read (${(error as NodeJS.ErrnoException).code})`);
    }
  }
  return { values, faults };
}
