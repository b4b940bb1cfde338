import { chown, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Certificate, createCertificate } from "@booking-events/scripts/certificates";
import type { PostgresServer } from "@booking-events/scripts/services";
import type pg from "pg";

/** PostgreSQL reads its configuration when it gets to it. */
const longestReloadMs = 20_000;
const lookIntervalMs = 100;

/** Certificate and key are in one file: one rename replaces both. */
const fileName = "certificate-and-key.pem";

/** @param admin connects without TLS */
export async function serveTls({ home, url: plainUrl }: PostgresServer, admin: pg.Pool, dir: string) {
  const valid = await createCertificate();
  const expired = await createCertificate({
    notBeforeDate: new Date("2024-01-01"),
    notAfterDate: new Date("2025-01-01"),
  });
  // The expired one is trusted as well: nothing else is wrong with it.
  const authorities = join(dir, "authorities.pem");
  await writeFile(authorities, `${valid.certificate}\n${expired.certificate}`);
  const url = new URL(plainUrl);
  url.hostname = "localhost";
  url.searchParams.set("sslmode", "verify-full");
  url.searchParams.set("sslrootcert", authorities);

  const file = join(home, "data", fileName);
  const { uid, gid } = await stat(join(home, "data"));
  const install = async ({ certificate, key }: Certificate) => {
    await writeFile(`${file}.new`, `${certificate}\n${key}`, { mode: 0o600 });
    await chown(`${file}.new`, uid, gid);
    await rename(`${file}.new`, file);
  };
  await install(valid);
  await admin.query(`alter system set ssl_cert_file = '${fileName}'`);
  await admin.query(`alter system set ssl_key_file = '${fileName}'`);
  await admin.query("alter system set ssl = on");
  await admin.query("select pg_reload_conf()");

  return {
    /** For clients that connect over TLS only, and check the certificate. */
    url: url.href,
    /**
     * For a while, PostgreSQL presents an expired certificate, and nobody keeps a connection over TLS.
     *
     * @param pool connects over TLS
     * @throws when it was refused no connection for this
     */
    async presentExpired(pool: pg.Pool, forMs: number, signal: AbortSignal): Promise<void> {
      let endsAtMs = performance.now() + longestReloadMs;
      let isRefused = false;
      await install(expired);
      while (performance.now() < endsAtMs && !signal.aborted) {
        await admin.query("select pg_reload_conf()");
        // Each time, since clients connect until PostgreSQL has read its configuration.
        await admin.query("select pg_terminate_backend(pid) from pg_stat_ssl where ssl");
        if (!isRefused && (await findsExpired(pool))) {
          isRefused = true;
          endsAtMs = performance.now() + forMs;
        }
        await sleep(lookIntervalMs, undefined, { signal }).catch(() => {});
      }
      await install(valid);
      await admin.query("select pg_reload_conf()");
      if (!isRefused && !signal.aborted)
        throw new Error("PostgreSQL presented no expired certificate: this run proves nothing about it.");
    },
  };
}

function findsExpired(pool: pg.Pool): Promise<boolean> {
  return pool.query("select").then(
    () => false,
    (error: NodeJS.ErrnoException) => error.code === "CERT_HAS_EXPIRED",
  );
}
