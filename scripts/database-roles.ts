import { join } from "node:path";
import { keepPassword } from "./keep-password.ts";

const processes = ["worker", "lookup", "webhooks", "console", "ops"] as const;

/** How each process connects to PostgreSQL. */
export interface DatabaseAccess {
  /** Of the user who owns the tables. */
  ownerUrl: string;
  urls: Record<(typeof processes)[number], string>;
  /** Brings the tables up to date. */
  migrate: { command: string[]; environment: Record<string, string> };
}

/** On a server that the user runs, every process connects as the user's URL says. */
export function asGiven(url: string): DatabaseAccess {
  return {
    ownerUrl: url,
    urls: { worker: url, lookup: url, webhooks: url, console: url, ops: url },
    migrate: { command: ["migrate"], environment: {} },
  };
}

/**
 * On our own server, each process has a role with the least that it needs. So what lacks a right shows here, and not in
 * production.
 *
 * @param dir keeps the roles' passwords
 */
export function asOwnRoles(ownerUrl: string, dir: string): DatabaseAccess {
  const passwords = processes.map((process) => [process, keepPassword(join(dir, `password-${process}`))] as const);
  const urls = passwords.map(([process, password]) => {
    const url = Object.assign(new URL(ownerUrl), { username: `booking_events_${process}`, password });
    return [process, url.href];
  });
  const environment = passwords.map(([process, password]) => [`${process.toUpperCase()}_DATABASE_PASSWORD`, password]);
  return {
    ownerUrl,
    urls: Object.fromEntries(urls),
    migrate: { command: ["migrate", "--grant"], environment: Object.fromEntries(environment) },
  };
}
