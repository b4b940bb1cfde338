import { chown, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Certificate, createCertificate } from "@booking-events/scripts/certificates";
import type { PostgresServer } from "@booking-events/scripts/services";
import pg from "pg";

/** PostgreSQL's side of TLS. */
export interface PostgresTls {
  /** For those who reach it over TLS only, and look at its certificate. */
  url: string;
  /**
   * For a while, PostgreSQL presents an expired certificate, and nobody keeps a connection over TLS.
   *
   * @throws when no connection was refused for it
   */
  presentExpired(forMs: number, signal: AbortSignal): Promise<void>;
}

const lookIntervalMs = 100;

/** Certificate and key in one file, so that one rename replaces both. */
const fileName = "certificate-and-key.pem";

export async function serveTls(postgres: PostgresServer, dir: string): Promise<PostgresTls> {
  const valid = await createCertificate();
  const [notBeforeDate, notAfterDate] = [new Date("2024-01-01"), new Date("2025-01-01")];
  const expired = await createCertificate({ notBeforeDate, notAfterDate });
  // Nothing else is wrong with the expired one.
  const authorities = join(dir, "authorities.pem");
  await writeFile(authorities, `${valid.certificate}\n${expired.certificate}`);
  const url = new URL(postgres.url);
  url.hostname = "localhost";
  url.searchParams.set("sslmode", "verify-full");
  url.searchParams.set("sslrootcert", authorities);

  const data = join(postgres.home, "data");
  const { uid, gid } = await stat(data);
  const install = async ({ certificate, key }: Certificate) => {
    const file = join(data, fileName);
    await writeFile(`${file}.new`, `${certificate}\n${key}`, { mode: 0o600 });
    await chown(`${file}.new`, uid, gid);
    await rename(`${file}.new`, file);
  };
  await install(valid);
  await query(postgres.url, [
    `alter system set ssl_cert_file = '${fileName}'`,
    `alter system set ssl_key_file = '${fileName}'`,
    "alter system set ssl = on",
    "select pg_reload_conf()",
  ]);

  return {
    url: url.href,
    async presentExpired(forMs, signal) {
      const endAtMs = performance.now() + forMs;
      let isRefused = false;
      await install(expired);
      while (performance.now() < endAtMs && !signal.aborted) {
        // Whoever connected before PostgreSQL had read its configuration again is ended at the next look.
        await query(postgres.url, [
          "select pg_reload_conf()",
          "select pg_terminate_backend(pid) from pg_stat_ssl where ssl",
        ]);
        isRefused ||= await query(url.href, []).then(
          () => false,
          (error: NodeJS.ErrnoException) => error.code === "CERT_HAS_EXPIRED",
        );
        await sleep(lookIntervalMs, undefined, { signal }).catch(() => {});
      }
      await install(valid);
      await query(postgres.url, ["select pg_reload_conf()"]);
      if (!isRefused && !signal.aborted) throw new Error("Nobody was shown an expired certificate: this was no run.");
    },
  };
}

async function query(url: string, statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 10_000, query_timeout: 10_000 });
  // Whoever runs a query is told, too.
  client.on("error", () => {});
  try {
    await client.connect();
    for (const statement of statements) await client.query(statement);
  } finally {
    await client.end();
  }
}
