import { existsSync, statSync } from "node:fs";
import { isValid, type Partner, PartnersError, readPartnersFile } from "@booking-events/partners";
import { describeCount } from "../describe.ts";
import { type Check, ok, problem, unknown } from "./check.ts";

const writableByOthers = 0o022;
const anyRightOfOthers = 0o077;
const soonMs = 14 * 24 * 60 * 60_000;
/** Written by npm start, with the passwords of its services. */
const environmentFiles = [".data/env", ".data/ops.env"];

export function checkFiles(partnersFile: string, now: Date): Check[] {
  return [...checkPartnersFile(partnersFile, now), ...environmentFiles.flatMap(checkEnvironmentFile)];
}

function checkPartnersFile(path: string, now: Date): Check[] {
  const subject = { name: "The partners file is valid", why: "Without a valid one, ingest refuses all events." };
  try {
    const { partners } = readPartnersFile(path);
    return [ok(subject, describeCount(partners.length, "partner")), checkMode(path), ...checkSecrets(partners, now)];
  } catch (error) {
    if (!(error instanceof PartnersError)) throw error;
    return [
      existsSync(path)
        ? problem(subject, error.message, "Correct it, or restore a copy.")
        : unknown(subject, error.message, "Run this where ingest runs."),
    ];
  }
}

function checkMode(path: string): Check {
  const subject = {
    name: "Only its owner can change the partners file",
    why: "Whoever can write it can add a secret.",
  };
  const isWritable = (statSync(path).mode & writableByOthers) !== 0;
  return isWritable
    ? problem(subject, `others may write ${path}`, `chmod go-w ${path}`)
    : ok(subject, "nobody else may write it");
}

function checkSecrets(partners: Partner[], now: Date): Check[] {
  const subject = { name: "Partners have valid secrets", why: "Without one, a partner's events are refused (403)." };
  const soon = new Date(now.getTime() + soonMs);
  const problems = partners
    .filter(({ enabled, secrets }) => enabled && !secrets.some((secret) => isValid(secret, soon)))
    .map(({ id, secrets }) => {
      const valid = secrets.filter((secret) => isValid(secret, now));
      const ends = valid.map(({ expiresAt }) => expiresAt?.slice(0, 10)).sort();
      const detail =
        valid.length === 0 ? `${id} has no valid secret` : `the last secret of ${id} expires on ${ends.at(-1)}`;
      return problem(subject, detail, `ops partners rotate ${id} --overlap 7d`);
    });
  return problems.length === 0 ? [ok(subject, "for the next 14 days")] : problems;
}

function checkEnvironmentFile(environmentFile: string): Check[] {
  const subject = {
    name: `Only its owner can read ${environmentFile}`,
    why: "It has passwords of Redis or PostgreSQL.",
  };
  const mode = readMode(environmentFile);
  if (mode === undefined) return [];
  return [
    (mode & anyRightOfOthers) === 0
      ? ok(subject, "nobody else may read it")
      : problem(subject, "others may read it", `chmod 600 ${environmentFile}`),
  ];
}

/** @returns undefined if there is no such file, or its folder is closed to this user, as in a container */
function readMode(path: string): number | undefined {
  try {
    return statSync(path).mode;
  } catch {
    return undefined;
  }
}
