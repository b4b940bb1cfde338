import { adviseOnConnection, nameVariable, type RedisServers } from "@booking-events/runtime";
import { NoPrimary } from "./directory.ts";

/** What happened, as the end of a sentence that begins with "Redis", and what helps. Nothing of them is a secret. */
export interface RedisFault {
  what: string;
  advice: string;
}

/** Errors of the servers that were asked where the primary is. Sentinels have a password of their own. */
export const ofAskedServer = new WeakSet<Error>();

/** How ioredis and our own deadlines say that Redis does not answer. */
const silence = /^(Connection is closed|Command timed out|No result within|Stream isn't writeable)/;
const maxQuotedCharacters = 200;

/** What helps when Redis refuses a connection or a command, by the beginning of what it says. */
const refusals: readonly [start: string, advise: (credentials: string, variable: string) => string][] = [
  ["WRONGPASS", (credentials) => `Correct the user name or the password: ${credentials}.`],
  ["NOAUTH", (credentials) => `It demands a password: set it in ${credentials}.`],
  ["ERR AUTH", (credentials) => `It demands no password, or another user: correct ${credentials}.`],
  ["NOPERM", () => "Give this user the rights that deploy/redis-users.conf lists, or use the right user."],
  [
    "ERR max number of clients reached",
    () => "Find out who has so many connections (CLIENT LIST), and end them, or raise maxclients by CONFIG SET.",
  ],
  ["LOADING", () => "Wait until it has read its data. INFO persistence says how far it is."],
  ["MISCONF", () => "It cannot write to its disk: make space, and look into its log."],
  ["OOM", () => 'Its memory is full: see "RedisMemoryHigh" in docs/runbook.md.'],
  ["READONLY", (_, variable) => `It is a replica: let ${variable} lead to the primary.`],
  ["MASTERDOWN", (_, variable) => `It is a replica without its primary: let ${variable} lead to the primary.`],
  ["NOREPLICAS", () => "Too few replicas follow it for min-replicas-to-write: start them."],
  ["CLUSTERDOWN", () => "Parts of the cluster have no primary: start the nodes that are missing."],
  [
    "DENIED",
    () => "It is in protected mode, which lets only its own host in: give it a password and `bind` to an address.",
  ],
  [
    "ERR No such master with that name",
    () => "The sentinels know another name: correct REDIS_SENTINEL_NAME. It is the one after `sentinel monitor`.",
  ],
  ["ERR This instance has cluster support disabled", () => "It is no cluster: set REDIS_URL instead of REDIS_CLUSTER."],
];

/** @returns undefined for an error of another origin */
export function describeRedisFault(error: unknown, servers: RedisServers): RedisFault | undefined {
  if (!(error instanceof Error)) return undefined;
  const variable = nameVariable(servers);
  const { name, message, code } = error as Error & { code?: unknown };
  if (error instanceof NoPrimary)
    return { what: "does not answer (no primary is known)", advice: adviseOnConnection(null, "Redis", variable) };
  if (name === "ReplyError") {
    const [, advise] = refusals.find(([start]) => message.startsWith(start)) ?? [];
    // Other sentences may repeat arguments.
    if (advise === undefined) return { what: `refused the command (${message.split(" ", 1)[0]})`, advice: "" };
    const quoted = message.length > maxQuotedCharacters ? `${message.slice(0, maxQuotedCharacters)}…` : message;
    return {
      what: `refuses: "${quoted.replace(/\.$/, "")}"`,
      advice: advise(nameCredentials(error, servers), variable),
    };
  }
  const known = typeof code === "string" ? code : null;
  if (known === null && name !== "MaxRetriesPerRequestError" && !silence.test(message)) return undefined;
  return {
    what: known === null ? "does not answer" : `does not answer (${known})`,
    advice: adviseOnConnection(known, "Redis", variable),
  };
}

function nameCredentials(error: Error, servers: RedisServers): string {
  if (typeof servers === "string") return "REDIS_URL, or REDIS_PASSWORD if the URL has no password";
  return "sentinels" in servers && ofAskedServer.has(error)
    ? "REDIS_SENTINEL_USERNAME and REDIS_SENTINEL_PASSWORD"
    : "REDIS_USERNAME and REDIS_PASSWORD";
}
