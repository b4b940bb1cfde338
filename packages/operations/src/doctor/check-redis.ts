import type { RedisExamination } from "@booking-events/queue";
import { listUrls, type RedisServers } from "@booking-events/runtime";
import { type Check, ok, problem, unknown } from "./check.ts";
import {
  checkClock,
  checkDisk,
  checkEncryption,
  checkOvercommit,
  isInPrivateNetwork,
  isLoopback,
} from "./check-host.ts";

interface Wanted {
  redisServers: RedisServers;
  replicasToConfirm: number;
}

export function checkRedis(examination: RedisExamination, wanted: Wanted): Check[] {
  const { redisServers: servers } = wanted;
  const redisCli = toRedisCli(servers);
  const url = new URL(listUrls(servers)[0]);
  const howToEncrypt = typeof servers === "string" ? "Use rediss:// in REDIS_URL." : "Set REDIS_TLS to true.";
  return [
    ...checkDurability(examination, redisCli),
    ...checkReplicas(examination, wanted, redisCli),
    ...checkCoverage(examination, redisCli),
    checkFsyncIsKnown(examination),
    checkRewrite(examination, redisCli),
    checkMemory(examination, redisCli),
    checkConfiguration(examination, redisCli),
    checkSequence(examination),
    checkPassword(url, servers),
    checkEncryption("Redis", url, url.protocol === "rediss:", howToEncrypt),
    checkClock("Redis", examination.clockAheadMs),
    checkDisk("Redis", url, examination.folder),
    checkOvercommit(url),
  ];
}

/** Returns the beginning of a command that reaches each server whose settings count. */
function toRedisCli(servers: RedisServers): string {
  if (typeof servers === "string") return 'redis-cli -u "$REDIS_URL"';
  if ("cluster" in servers) return `redis-cli --cluster call ${new URL(listUrls(servers)[0]).host}`;
  return "redis-cli -h HOST";
}

function rewrite(redisCli: string): string {
  return `${redisCli} CONFIG REWRITE`;
}

function checkDurability({ durabilityProblems }: RedisExamination, redisCli: string): Check[] {
  const subject = { name: "Redis keeps events", why: "Ingest answers 200 when Redis has the event on its disk." };
  if (durabilityProblems.length === 0) return [ok(subject, "append-only file, no eviction, primary")];
  return durabilityProblems.map((sentence) => {
    const [, name, value] = /Set: (\S+) (\S+)\.$/.exec(sentence) ?? [];
    const remedy =
      name === undefined ? "As it says." : `${redisCli} CONFIG SET ${name} ${value} && ${rewrite(redisCli)}`;
    return problem(subject, sentence, remedy);
  });
}

/** A failover loses what only the primary had. */
function checkReplicas(
  { replicaCount, minReplicasToWrite }: RedisExamination,
  { redisServers, replicasToConfirm }: Wanted,
  redisCli: string,
): Check[] {
  const canFailOver = typeof redisServers !== "string" || replicaCount > 0;
  if (replicasToConfirm === 0 && !canFailOver) return [];
  const confirmed = {
    name: "Replicas confirm each event",
    why: "Otherwise a failover loses the last events, although their senders got 200.",
  };
  if (replicasToConfirm === 0)
    return [problem(confirmed, "none has to", "Set REDIS_REPLICAS_TO_CONFIRM to 1, for ingest and ops.")];
  const fits = {
    name: "Redis demands as many replicas as must confirm",
    why: "With fewer, Redis queues events whose senders get 503. With more, it refuses events that could be confirmed.",
  };
  const remedy = `${redisCli} CONFIG SET min-replicas-to-write ${replicasToConfirm} && ${rewrite(redisCli)}`;
  return [ok(confirmed, `${replicasToConfirm} must`), checkMinReplicas()];

  function checkMinReplicas(): Check {
    if (minReplicasToWrite === null) return unknown(fits, "Redis does not permit CONFIG GET", remedy);
    return minReplicasToWrite === replicasToConfirm
      ? ok(fits, `min-replicas-to-write is ${minReplicasToWrite}`)
      : problem(fits, `min-replicas-to-write is ${minReplicasToWrite}, but ${replicasToConfirm} must confirm`, remedy);
  }
}

export function checkSentinels(servers: RedisServers, problems: string[]): Check[] {
  if (typeof servers === "string" || "cluster" in servers) return [];
  const subject = { name: "Sentinels can replace the primary", why: "Otherwise its failure is an outage." };
  const [sentence] = problems;
  return [
    sentence === undefined
      ? ok(subject, "most of them see each other")
      : problem(subject, sentence, "Start those that are missing, and look at their logs."),
  ];
}

function checkCoverage({ requiresFullCoverage }: RedisExamination, redisCli: string): Check[] {
  if (requiresFullCoverage === null) return [];
  const subject = {
    name: "A part of the cluster works alone",
    why: "Otherwise all queues stop when the servers of one are down.",
  };
  const remedy = `${redisCli} CONFIG SET cluster-require-full-coverage no && ${rewrite(redisCli)}`;
  return [
    requiresFullCoverage
      ? problem(subject, "cluster-require-full-coverage is yes", remedy)
      : ok(subject, "cluster-require-full-coverage is no"),
  ];
}

function checkFsyncIsKnown({ canReadFsync }: RedisExamination): Check {
  const subject = { name: "Redis writes each event to disk", why: "Otherwise a crash loses acknowledged events." };
  return canReadFsync
    ? ok(subject, "its fsync settings can be read")
    : unknown(
        subject,
        "Redis does not permit CONFIG GET",
        "Check at your provider: appendfsync always, no-appendfsync-on-rewrite no.",
      );
}

function checkRewrite({ rewriteAfterPercent, isRewriteFailing }: RedisExamination, redisCli: string): Check {
  const subject = {
    name: "Redis shortens its append-only file",
    why: "Otherwise the file grows until the disk is full, and Redis takes ever longer to start.",
  };
  if (isRewriteFailing)
    return problem(subject, "its last rewrite failed", "See Redis' log for the cause, such as memory or its disk.");
  const remedy = `${redisCli} CONFIG SET auto-aof-rewrite-percentage 100 && ${rewrite(redisCli)}`;
  if (rewriteAfterPercent === null) return unknown(subject, "Redis does not permit CONFIG GET", remedy);
  return rewriteAfterPercent === 0
    ? problem(subject, "auto-aof-rewrite-percentage is 0", remedy)
    : ok(subject, `it rewrites the file when it has grown by ${rewriteAfterPercent} %`);
}

function checkMemory({ maxMemoryBytes }: RedisExamination, redisCli: string): Check {
  const subject = {
    name: "Redis has a memory limit",
    why: "Without one, the system kills Redis before ingest refuses events.",
  };
  return maxMemoryBytes > 0
    ? ok(subject, `maxmemory is ${Math.round(maxMemoryBytes / 2 ** 20)} MB`)
    : problem(subject, "maxmemory is 0", `${redisCli} CONFIG SET maxmemory 1gb && ${rewrite(redisCli)}`);
}

function checkConfiguration({ configChanges }: RedisExamination, redisCli: string): Check {
  const subject = {
    name: "Redis keeps its settings",
    why: "A setting made by CONFIG SET only is gone after a restart, and so may be the events.",
  };
  const remedy = `${rewrite(redisCli)} (without a configuration file: change the arguments that Redis is started with)`;
  if (configChanges === null) return unknown(subject, "Redis before 7 does not count CONFIG SET", remedy);
  const { set, written } = configChanges;
  if (set > 0 && written === 0) return problem(subject, `CONFIG SET was used ${set} ×, CONFIG REWRITE never`, remedy);
  return ok(subject, set === 0 ? "none was changed since its start" : "changes were written to its configuration");
}

function checkSequence({ sequenceProblems }: RedisExamination): Check {
  const subject = { name: "Events get sequence numbers", why: "They are the order in which events count." };
  const [sentence] = sequenceProblems;
  return sentence === undefined
    ? ok(subject, "the next number is near this host's clock")
    : problem(subject, sentence, 'See "The sequence is far ahead or behind" in docs/runbook.md.');
}

function checkPassword(url: URL, servers: RedisServers): Check {
  const subject = { name: "Redis has a password", why: "Whoever reaches Redis reads and changes waiting events." };
  const [variable, password, user] =
    typeof servers === "string"
      ? ["REDIS_URL", new URL(servers).password, "REDIS_URL"]
      : ["REDIS_PASSWORD", servers.password, "REDIS_USERNAME"];
  const remedy = `Include deploy/redis-users.conf in redis.conf, and name the user in ${user}.`;
  if (password) return ok(subject, `${variable} has one`);
  if (isLoopback(url)) return ok(subject, "only this host reaches it");
  if (isInPrivateNetwork(url)) return unknown(subject, `none; only the network protects ${url.hostname}`, remedy);
  return problem(subject, "none", remedy);
}
