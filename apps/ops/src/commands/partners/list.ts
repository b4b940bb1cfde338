import { isRevoked, isValid, type Partner, type PartnerSecret, readPartnersFile } from "@booking-events/partners";
import { type LastUses, readBytesToday, readLastUses } from "@booking-events/queue";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { partnersPath } from "../../partners-file.ts";
import { knowsRedis, readRedisSettings } from "../../queue.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printJson, printLine, printTable, toSeconds } from "../../terminal/print.ts";
import { describeKinds, describeQuota, describeRate } from "./describe-partner.ts";

export function addListCommand(partners: Command, context: Context): void {
  partners
    .command("list")
    .summary("list partners and their secrets")
    .description(
      "List partners and the state of their secrets. If REDIS_URL is set, the list also shows how much of its quota " +
        "each partner has used today, and when each secret was last used, which ingest records every few seconds.",
    )
    .option("--json", "print a JSON array: id, name, enabled, kinds, rateLimit, bytesPerDay, country, secrets")
    .action(async ({ json }) => {
      const path = partnersPath(context);
      const { partners } = readPartnersFile(path);
      const now = context.now();
      const usage = await readUsageIfPossible(
        context,
        partners.map(({ id }) => id),
      );
      if (json) {
        const shown = partners.map((partner) => withoutDigests(partner, now, usage));
        printJson(context.stdout, shown);
      } else if (partners.length === 0) {
        printLine(context.stdout, `There are no partners in ${path} yet.`);
      } else {
        const hasCountries = partners.some(({ country }) => country !== undefined);
        printTable(context.stdout, createColumns(now, usage, hasCountries), partners.flatMap(toRows));
      }
    });
}

/** What Redis knows about the partners. */
interface Usage {
  lastUses: LastUses;
  bytesToday: Map<string, number>;
}

/** The list is useful without Redis, so a missing or broken Redis is not a failure. */
async function readUsageIfPossible({ environment, stderr }: Context, partners: string[]): Promise<Usage | undefined> {
  if (!knowsRedis(environment)) return undefined;
  const settings = readRedisSettings(environment);
  try {
    const [lastUses, bytesToday] = await Promise.all([readLastUses(settings), readBytesToday(settings, partners)]);
    return { lastUses, bytesToday };
  } catch {
    printLine(
      stderr,
      "Redis does not answer, so the list does not show when secrets were last used, or the bytes of today.",
    );
    return undefined;
  }
}

function createColumns(now: Date, usage: Usage | undefined, hasCountries: boolean): Column<SecretRow>[] {
  const columns: Column<SecretRow>[] = [
    { header: "PARTNER", value: ({ partner }) => partner?.id ?? "" },
    { header: "NAME", value: ({ partner }) => partner?.name ?? "" },
    { header: "ENABLED", value: ({ partner }) => (partner ? (partner.enabled ? "yes" : "no") : "") },
    { header: "KINDS", value: ({ partner }) => (partner ? describeKinds(partner.kinds) : "") },
    { header: "RATE", value: ({ partner }) => (partner ? describeRate(partner) : "") },
    { header: "QUOTA", value: ({ partner }) => (partner ? describeUsedQuota(partner, usage) : "") },
    ...(hasCountries ? [{ header: "COUNTRY", value: ({ partner }: SecretRow) => partner?.country ?? "" }] : []),
    { header: "SECRET", value: ({ secret }) => secret?.id ?? "none" },
    { header: "CREATED", value: ({ secret }) => secret?.createdAt.slice(0, 10) ?? "" },
    { header: "VALID", value: ({ secret }) => (secret ? describeValidity(secret, now) : "") },
  ];
  if (usage === undefined) return columns;
  return [...columns, { header: "LAST USED", value: ({ id, secret }) => describeUse(usage.lastUses, id, secret) }];
}

/** A line of the list. Only the first secret of a partner shows the partner. */
interface SecretRow {
  id: string;
  partner: Partner | undefined;
  secret: PartnerSecret | undefined;
}

function toRows(partner: Partner): SecretRow[] {
  const [first, ...others] = partner.secrets;
  const { id } = partner;
  return [{ id, partner, secret: first }, ...others.map((secret) => ({ id, partner: undefined, secret }))];
}

function withoutDigests(partner: Partner, now: Date, usage: Usage | undefined): unknown {
  const secrets = partner.secrets.map((secret) => ({
    id: secret.id,
    createdAt: secret.createdAt,
    expiresAt: secret.expiresAt,
    revoked: isRevoked(secret),
    valid: isValid(secret, now),
    ...(usage === undefined ? {} : { lastUsedAt: usage.lastUses.of(partner.id, secret.id) }),
  }));
  return { ...partner, ...(usage && { bytesToday: usage.bytesToday.get(partner.id) ?? 0 }), secrets };
}

function describeUsedQuota({ id, bytesPerDay }: Partner, usage: Usage | undefined): string {
  const quota = `${describeQuota(bytesPerDay)} a day`;
  return usage === undefined ? quota : `${describeQuota(usage.bytesToday.get(id) ?? 0)} of ${quota}`;
}

function describeUse(lastUses: LastUses, id: string, secret: PartnerSecret | undefined): string {
  if (secret === undefined) return "";
  const usedAt = lastUses.of(id, secret.id);
  return usedAt === null ? "never" : toSeconds(usedAt);
}

function describeValidity(secret: PartnerSecret, now: Date): string {
  if (isRevoked(secret)) return "revoked";
  if (secret.expiresAt === null) return "yes";
  const expiresAt = new Date(secret.expiresAt);
  if (Number.isNaN(expiresAt.getTime())) return "expired";
  return isValid(secret, now) ? `until ${toSeconds(expiresAt)}` : `expired ${toSeconds(expiresAt)}`;
}
