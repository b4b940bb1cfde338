import { isIP } from "node:net";
import * as v from "valibot";
import { findRedisFaults, isAddressList, parseAddressList } from "./redis-servers.ts";
import { readSecretFiles } from "./secret-files.ts";
import { splitHosts } from "./split-hosts.ts";
import { StartError } from "./start-error.ts";

const wholeNumber = (minimum: number, maximum: number) =>
  v.pipe(
    v.string(),
    v.regex(/^\d+$/, `must be a whole number from ${minimum} to ${maximum}`),
    v.transform(Number),
    v.minValue(minimum, `must be at least ${minimum}`),
    v.maxValue(maximum, `must be at most ${maximum}`),
  );

const ownUrl = v.pipe(
  v.string(),
  v.check(isSafeUrl, "must be a URL that starts with https://, or with http:// and localhost, without a user"),
);
const addressRange = (text: string) => {
  const [address = "", bits, ...others] = text.split("/");
  const family = isIP(address);
  return family !== 0 && others.length === 0 && (bits === undefined || isWholeUpTo(bits, family === 6 ? 128 : 32));
};
const isWholeUpTo = (text: string, most: number) => /^\d{1,3}$/.test(text) && Number(text) <= most;
const list = v.pipe(
  v.string(),
  v.transform((text) =>
    text
      .split(",")
      .map((entry) => entry.trim())
      .filter((entry) => entry !== ""),
  ),
);
const headerName = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z][A-Za-z0-9-]*$/, "must be the name of a header, such as X-Forwarded-Email"),
);

/** The variables whose passwords may stand in variables of their own, where they need no encoding. */
const passwordVariables = {
  REDIS_URL: "REDIS_PASSWORD",
  DATABASE_URL: "DATABASE_PASSWORD",
} as const;

const connectionUrl = (name: keyof typeof passwordVariables, ...protocols: string[]) => {
  const wanted = `must be a URL that starts with ${protocols.map((protocol) => `${protocol}//`).join(" or ")}`;
  const encoded =
    "must be a valid URL. Percent-encode special characters, such as / # ? % and @, in its user name and password, " +
    `or set the password in ${passwordVariables[name]}, where it needs no encoding`;
  return v.pipe(
    v.string(`is required: it ${wanted}`),
    v.check((value) => protocols.some((protocol) => value.toLowerCase().startsWith(`${protocol}//`)), wanted),
    v.check((value) => splitHosts(value).every(isEncoded), encoded),
  );
};

/**
 * A password such as `1/x` moves the boundary between the host and the path, so the URL may still be valid: its host is
 * then the user name. The `@` behind the boundary gives it away.
 */
function isEncoded(value: string): boolean {
  const [, afterAuthority = ""] = /^[^:]+:\/\/[^/?#]*(.*)$/s.exec(value) ?? [];
  if (!URL.canParse(value) || afterAuthority.includes("@")) return false;
  const { username, password } = new URL(value);
  return [username, password].every(isDecodable);
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/** Over http, whoever listens would log in too. */
function isSafeUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, hostname, username, password } = new URL(value);
  const isLocal = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
  return (protocol === "https:" || (protocol === "http:" && isLocal)) && username === "" && password === "";
}

const maxShards = 1_024;

/** So that each shard of a smaller queue is one of a larger queue too. */
const shardCount = v.pipe(
  wholeNumber(1, maxShards),
  v.check((value) => Number.isInteger(Math.log2(value)), "must be a power of two, such as 8"),
);

const port = wholeNumber(0, 65_535);
const address = v.pipe(v.string(), v.nonEmpty("must be an address to listen on"));
const httpUrl = v.pipe(
  v.string(),
  v.check(
    (value) => URL.canParse(value) && /^https?:\/\//i.test(value),
    "must be a URL that starts with http:// or https://",
  ),
);
const origin = v.pipe(
  httpUrl,
  v.check(
    (value) => new URL(value).origin === value,
    "must be an origin such as https://bookings.example.com, no more",
  ),
);
const addressList = v.pipe(
  v.string(),
  v.check(isAddressList, "must be a list of hosts with ports, such as redis-1:6379,redis-2:6379"),
  v.transform(parseAddressList),
);
const trueOrFalse = v.pipe(
  v.string(),
  v.toLowerCase(),
  v.picklist(["true", "false"], "must be true or false"),
  v.transform((value) => value === "true"),
);

/** They say where Redis is. A process that reads one of them reads all. `toRedisServers` takes them together. */
export const redisVariables = {
  REDIS_URL: v.optional(connectionUrl("REDIS_URL", "redis:", "rediss:")),
  REDIS_CLUSTER: v.optional(addressList),
  REDIS_SENTINELS: v.optional(addressList),
  REDIS_SENTINEL_NAME: v.optional(v.string()),
  REDIS_USERNAME: v.optional(v.string(), ""),
  REDIS_PASSWORD: v.optional(v.string(), ""),
  REDIS_TLS: v.optional(trueOrFalse, "false"),
  REDIS_SENTINEL_USERNAME: v.optional(v.string(), ""),
  REDIS_SENTINEL_PASSWORD: v.optional(v.string(), ""),
} satisfies v.ObjectEntries;

/**
 * The environment variables of the service, with their rules and defaults. Each process selects the ones that it reads.
 * `DATABASE_URL` and `REDIS_URL` contain passwords, so they have no default.
 */
export const variables = {
  PORT: v.optional(port, "8080"),
  HOST: v.optional(address, "0.0.0.0"),
  // Only local by default: metrics name partners, and frequent requests would keep the process busy.
  ADMIN_HOST: v.optional(address, "127.0.0.1"),
  ...redisVariables,
  REDIS_REPLICAS_TO_CONFIRM: v.optional(wholeNumber(0, 10), "0"),
  DATABASE_URL: v.pipe(
    connectionUrl("DATABASE_URL", "postgres:", "postgresql:"),
    v.check(
      (value) => !/[?&]target_session_attrs=(?!read-write([&#]|$))/.test(value),
      "must have read-write as its target_session_attrs, or none",
    ),
  ),
  DATABASE_PASSWORD: v.optional(v.string(), ""),
  /** The passwords that `ops migrate --grant` gives to roles. Each process gets its own as `DATABASE_PASSWORD`. */
  WORKER_DATABASE_PASSWORD: v.optional(v.string()),
  LOOKUP_DATABASE_PASSWORD: v.optional(v.string()),
  OPS_DATABASE_PASSWORD: v.optional(v.string()),
  WEBHOOKS_DATABASE_PASSWORD: v.optional(v.string()),
  CONSOLE_DATABASE_PASSWORD: v.optional(v.string()),
  EXPORTER_DATABASE_PASSWORD: v.optional(v.string()),
  DATABASE_STANDBYS_TO_CONFIRM: v.optional(wholeNumber(0, 100), "0"),
  /** A name that PostgreSQL keeps for itself neither, nor shortens, also when _test_partners is appended to it. */
  DATABASE_SCHEMA: v.optional(
    v.pipe(
      v.string(),
      v.regex(
        /^(?!pg_|\d|information_schema$)(?!\w*_test_partners$)\w{1,49}$/,
        "must be a name of up to 49 letters (a to z), digits and underscores, which begins with neither a digit nor " +
          "pg_, does not end in _test_partners, and is not information_schema",
      ),
    ),
    "public",
  ),
  PARTNERS_FILE: v.optional(v.pipe(v.string(), v.nonEmpty("must be the path of a file")), "./partners.json"),
  ACCEPTED_FOLDER: v.optional(v.string()),
  TRUSTED_PROXY_HOPS: v.optional(wholeNumber(0, 16), "0"),
  // The header that announces it has whole seconds. Google's load balancer keeps idle connections for 600 s.
  KEEP_ALIVE_TIMEOUT_MS: v.optional(wholeNumber(1_000, 86_400_000), "650000"),
  /** Where partners reach lookup, for the pages of `/docs`. */
  LOOKUP_URL: v.optional(httpUrl),
  /** Whose pages may ask lookup from a browser. */
  DOCS_ORIGIN: v.optional(origin),
  MAX_CONNECTIONS: v.optional(wholeNumber(1, 1_000_000), "10000"),
  BODY_LIMIT_BYTES: v.optional(wholeNumber(1_024, 16 * 1_024 * 1_024), "65536"),
  MAX_BACKLOG: v.optional(wholeNumber(1, 1_000_000_000), "1000000"),
  REDIS_MEMORY_HIGH_WATER: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^(0?\.\d+|1(\.0+)?)$/, "must be a number from 0 to 1, such as 0.7"),
      v.transform(Number),
      v.minValue(0.01, "must be at least 0.01"),
    ),
    "0.7",
  ),
  CONCURRENCY: v.optional(wholeNumber(1, 5_000), "3000"),
  BATCH_SIZE: v.optional(wholeNumber(1, 1_000), "800"),
  DUPLICATE_WINDOW_HOURS: v.optional(wholeNumber(0, 24 * 365), "72"),
  RETENTION_DAYS: v.optional(wholeNumber(0, 36_500), "400"),
  DELETED_RETENTION_DAYS: v.optional(wholeNumber(0, 36_500), "30"),
  DEAD_LETTER_RETENTION_DAYS: v.optional(wholeNumber(0, 36_500), "90"),
  /** Lookup returns what was read of a booking's fields to the partner that sent them. */
  LOOKUP_VALUES: v.optional(trueOrFalse, "true"),
  DIGEST_KEY: v.optional(v.pipe(v.string(), v.minLength(32, "must have at least 32 characters, picked at random"))),
  /**
   * The braces are a Redis Cluster hash tag: they keep all keys of the queue in one slot, as BullMQ's scripts require.
   */
  QUEUE_PREFIX: v.optional(
    v.pipe(v.string(), v.regex(/^\{[^{}:]+\}$/, "must be a name in braces, such as {booking-events}, without a colon")),
    "{booking-events}",
  ),
  QUEUE_SHARDS: v.optional(shardCount, "1"),
  /** Subscribers may have URLs with http and private addresses. */
  WEBHOOKS_ALLOW_PRIVATE: v.optional(trueOrFalse, "false"),
  OPERATOR: v.optional(v.string()),
  OPERATOR_REQUIRED: v.optional(trueOrFalse, "false"),
  /** A proxy that they are reached through. */
  WEBHOOKS_PROXY_URL: v.optional(httpUrl),
  /** Whoever knows it may do everything in the console. */
  CONSOLE_PASSWORD: v.optional(v.pipe(v.string(), v.minLength(16, "must have at least 16 characters"))),
  CONSOLE_SESSION_KEY: v.optional(
    v.pipe(v.string(), v.minLength(32, "must have at least 32 characters, picked at random")),
  ),
  CONSOLE_URL: v.optional(
    v.pipe(
      ownUrl,
      v.check((value) => new URL(value).pathname === "/", "must be the address alone, without a path"),
    ),
  ),
  CONSOLE_OIDC_ISSUER: v.optional(ownUrl),
  CONSOLE_OIDC_CLIENT_ID: v.optional(v.string()),
  CONSOLE_OIDC_CLIENT_SECRET: v.optional(v.string()),
  CONSOLE_IDENTITY_HEADER: v.optional(headerName),
  CONSOLE_GROUPS_HEADER: v.optional(headerName),
  CONSOLE_TRUSTED_PROXIES: v.optional(
    v.pipe(
      list,
      v.check((ranges) => ranges.every(addressRange), "must be addresses, such as 10.0.3.7,10.0.4.0/24"),
    ),
    "",
  ),
  CONSOLE_VIEWERS: v.optional(list, ""),
  CONSOLE_OPERATORS: v.optional(list, ""),
  CONSOLE_PRIVACY: v.optional(list, ""),
  /** Of docs/runbook.md, as a person reads it. */
  RUNBOOK_URL: v.optional(httpUrl),
  LOG_LEVEL: v.optional(
    v.picklist(
      ["fatal", "error", "warn", "info", "debug", "trace", "silent"],
      "must be one of fatal, error, warn, info, debug, trace, silent",
    ),
    "info",
  ),
  SHUTDOWN_DELAY_MS: v.optional(wholeNumber(0, 600_000), "0"),
  SHUTDOWN_TIMEOUT_MS: v.optional(wholeNumber(100, 600_000), "15000"),
} satisfies v.ObjectEntries;

const otlpProtocol = v.picklist(["http/protobuf"], "must be http/protobuf");

/** The standard variables of OpenTelemetry that decide whether traces are exported. */
export const tracingSwitches = {
  OTEL_SDK_DISABLED: v.optional(
    v.pipe(v.string(), v.toLowerCase(), v.picklist(["true", "false"], "must be true or false")),
    "false",
  ),
  OTEL_TRACES_EXPORTER: v.optional(v.picklist(["otlp", "none"], "must be otlp or none")),
  OTEL_EXPORTER_OTLP_ENDPOINT: v.optional(httpUrl),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: v.optional(httpUrl),
} satisfies v.ObjectEntries;

/** Those that say which traces are exported, and how. OpenTelemetry's exporter reads the others. */
export const tracingVariables = {
  OTEL_EXPORTER_OTLP_PROTOCOL: v.optional(otlpProtocol),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: v.optional(otlpProtocol),
  /** OpenTelemetry ignores all of the attributes if one of them is malformed. */
  OTEL_RESOURCE_ATTRIBUTES: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^([^,=]+=[^,=]*(,|$))*$/, "must be pairs such as deployment.environment.name=test,a=b"),
    ),
  ),
  OTEL_TRACES_SAMPLER: v.optional(
    v.pipe(
      v.string(),
      v.regex(
        /^(parentbased_)?(always_on|always_off|traceidratio)$/,
        "must be always_on, always_off or traceidratio, or one of them after parentbased_",
      ),
    ),
    "parentbased_always_on",
  ),
  OTEL_TRACES_SAMPLER_ARG: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^(0|0?\.\d+|1(\.0+)?)$/, "must be a number from 0 to 1, such as 0.01"),
      v.transform(Number),
    ),
    "1",
  ),
  OTEL_BSP_SCHEDULE_DELAY: v.optional(wholeNumber(1, 600_000), "5000"),
  OTEL_BSP_EXPORT_TIMEOUT: v.optional(wholeNumber(1, 600_000), "30000"),
  OTEL_BSP_MAX_QUEUE_SIZE: v.optional(wholeNumber(1, 100_000), "2048"),
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: v.optional(wholeNumber(1, 100_000), "512"),
} satisfies v.ObjectEntries;

/** For a process with another default of `PORT` than most. */
export const servicePort = (defaultPort: number) => v.optional(port, String(defaultPort));

/** The default of `ADMIN_PORT` differs between processes. */
export const adminPort = (defaultPort: number) => v.optional(port, String(defaultPort));

/**
 * Parses the given variables. The password of a URL may stand in a variable of its own, such as `REDIS_PASSWORD` for
 * `REDIS_URL`; the result has it in the URL. Each secret may stand in a file, which `REDIS_PASSWORD_FILE` names.
 *
 * @param environment usually `process.env`; an empty value counts as absent
 * @throws StartError that names every invalid variable, without its value
 */
export function parseEnvironment<const Entries extends v.ObjectEntries>(
  entries: Entries,
  environment: Record<string, string | undefined>,
): v.InferOutput<v.ObjectSchema<Entries, undefined>> {
  const set = Object.fromEntries(
    Object.entries(environment).filter(([, value]) => value !== undefined && value !== ""),
  );
  const files = readSecretFiles(namesRead(entries), set);
  const given = { ...set, ...files.values };
  const result = v.safeParse(v.object(entries), given);
  const redisFaults = Object.hasOwn(entries, "REDIS_CLUSTER") ? findRedisFaults(given) : [];
  const otherFaults = [...files.faults.values(), ...findLineBreaks(entries, given), ...redisFaults];
  if (result.success && otherFaults.length === 0) return addPasswords(result.output, given);
  const faults = (result.issues ?? []).flatMap((issue) => {
    const name = v.getDotPath(issue) ?? "(environment)";
    if (files.faults.has(name)) return [];
    return `${name} ${Object.hasOwn(given, name) ? issue.message : missingMessage(entries, name, issue.message)}`;
  });
  throw refusal([...otherFaults, ...faults]);
}

/** The variables of the entries, and those of the passwords of their URLs. */
function namesRead(entries: v.ObjectEntries): Set<string> {
  const passwords = Object.entries(passwordVariables).filter(([url]) => Object.hasOwn(entries, url));
  return new Set([...Object.keys(entries), ...passwords.map(([, password]) => password)]);
}

/** A password with a line break at its end is wrong, and nobody sees why. */
function findLineBreaks(entries: v.ObjectEntries, given: Record<string, unknown>): string[] {
  const ending = [...namesRead(entries)].filter((name) => /[\r\n]$/.test(String(given[name] ?? "")));
  return ending.map((name) => `${name} ends with a line break: remove it, as by printf %s instead of echo`);
}

function refusal(problems: string[]): StartError {
  return new StartError(`Correct these environment variables:\n${problems.map((line) => `  ${line}`).join("\n")}`);
}

/**
 * Puts each password that stands in a variable of its own into its URL, percent-encoded. A password in the URL counts
 * first.
 */
function addPasswords<Output extends object>(settings: Output, given: Record<string, string | undefined>): Output {
  const urls = Object.entries(passwordVariables).flatMap(([name, passwordName]) => {
    const password = given[passwordName];
    const text = settings[name as keyof Output];
    if (typeof text !== "string" || password === undefined) return [];
    const [url, ...others] = splitHosts(text).map((one) => new URL(one));
    if (url === undefined || url.password !== "") return [];
    if (url.host === "") throw refusal([`${passwordName} needs a host in ${name}`]);
    url.password = encodeURIComponent(password);
    return [[name, url.href.replace(`@${url.host}`, `@${[url, ...others].map(({ host }) => host).join(",")}`)]];
  });
  return { ...settings, ...Object.fromEntries(urls) };
}

/** Returns the message of the variable's own rule, because valibot only reports that the key is missing. */
function missingMessage(entries: v.ObjectEntries, name: string, fallback: string): string {
  const rule = entries[name];
  return rule === undefined ? fallback : (v.safeParse(rule, undefined).issues?.[0].message ?? fallback);
}
