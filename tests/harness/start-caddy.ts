import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@booking-events/scripts/ports";
import { findOrInstallTool } from "@booking-events/scripts/services";
import { waitFor } from "./wait-for.ts";

export type Caddy = Awaited<ReturnType<typeof startCaddy>>;

/** @returns undefined, after saying so: this machine can't have it */
export async function findCaddy(say: (line: string) => void): Promise<string | undefined> {
  // Processes behind it listen on several addresses of 127.0.0.0/8, which only Linux has.
  const program = process.platform === "linux" ? await findOrInstallTool("caddy", { say }) : undefined;
  if (program === undefined) say("deploy/Caddyfile is not tried: that needs Linux, and Caddy at /usr/bin/caddy.");
  return program;
}

const nobody = { upstream: "127.0.0.1:1", adminPort: 1 };

/**
 * Runs deploy/Caddyfile for `localhost`, on free ports of 127.0.0.1, with a certificate that Caddy creates.
 *
 * @param program where Caddy is
 * @param options.upstreams every ingest, as host:port
 * @param options.adminPort of every ingest
 * @param options.lookup default: there is none
 * @param options.webhooks likewise
 */
export async function startCaddy(
  program: string,
  {
    upstreams,
    adminPort,
    lookup = nobody,
    webhooks = nobody,
  }: {
    upstreams: readonly string[];
    adminPort: number;
    lookup?: typeof nobody;
    webhooks?: typeof nobody;
  },
) {
  const folder = await mkdtemp(join(tmpdir(), "booking-events-proxy-"));
  const [httpPort, httpsPort] = await Promise.all([freePort(), freePort()]);
  const variables = {
    PATH: process.env["PATH"],
    HOME: folder,
    XDG_DATA_HOME: join(folder, "data"),
    XDG_CONFIG_HOME: join(folder, "config"),
    SITE_ADDRESS: "localhost",
    INGEST_UPSTREAMS: upstreams.join(" "),
    INGEST_ADMIN_PORT: String(adminPort),
    LOOKUP_UPSTREAMS: lookup.upstream,
    LOOKUP_ADMIN_PORT: String(lookup.adminPort),
    WEBHOOKS_UPSTREAMS: webhooks.upstream,
    WEBHOOKS_ADMIN_PORT: String(webhooks.adminPort),
  };
  const child = spawn(program, ["run", "--config", "-"], {
    env: variables,
    stdio: ["pipe", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (output += text));
  child.stdin.end(JSON.stringify(readConfig(program, variables, { httpPort, httpsPort })));
  const authorityFile = join(folder, "data/caddy/pki/authorities/local/root.crt");

  return {
    pid: child.pid ?? 0,
    httpPort,
    httpsPort,
    /** The certificate of the authority that has signed Caddy's. */
    authority: await waitFor(() => readFile(authorityFile, "utf8")),
    /** The most memory that it has had. */
    async peakMemoryBytes(): Promise<number> {
      const status = await readFile(`/proc/${child.pid}/status`, "utf8");
      return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
    },
    /** All that it has printed so far. */
    output: () => output,
    async stop(): Promise<void> {
      if (child.exitCode === null) {
        child.kill("SIGTERM");
        await once(child, "close");
      }
      await rm(folder, { recursive: true, force: true });
    },
  };
}

interface CaddyConfig {
  apps: { http: { servers: Record<string, { listen: string[] }> } & Record<string, unknown> } & Record<string, unknown>;
}

function readConfig(
  program: string,
  variables: NodeJS.ProcessEnv,
  ports: { httpPort: number; httpsPort: number },
): CaddyConfig {
  const file = join(variables["HOME"] ?? "", "Caddyfile");
  const written = readFileSync("deploy/Caddyfile", "utf8");
  const isOld = /^v?2\.[0-6]\./.test(execFileSync(program, ["version"], { encoding: "utf8" }));
  // Debian 12 has Caddy 2.6, which does not know it. All but batches works without.
  writeFileSync(file, isOld ? written.replace(/^\s*enable_full_duplex$/m, "") : written);
  const adapt = ["adapt", "--adapter", "caddyfile", "--config", file];
  const config: CaddyConfig = JSON.parse(
    execFileSync(program, adapt, { env: variables, encoding: "utf8", stdio: "pipe" }),
  );
  const { http } = config.apps;
  Object.assign(http, { http_port: ports.httpPort, https_port: ports.httpsPort });
  for (const server of Object.values(http.servers)) {
    const isHttps = server.listen.includes(":443");
    server.listen = [`127.0.0.1:${isHttps ? ports.httpsPort : ports.httpPort}`];
  }
  config.apps["pki"] = { certificate_authorities: { local: { install_trust: false } } };
  return config;
}
