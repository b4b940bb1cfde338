import {
  describeQuota,
  type ListedPartner,
  type ListedSecret,
  listPartners,
  partnersPath,
  toSeconds,
} from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printJson, printLine, printTable } from "../../terminal/print.ts";
import { describeKinds, describeRate } from "./describe-partner.ts";

export function addListCommand(partners: Command, context: Context): void {
  partners
    .command("list")
    .description(
      "List partners and the state of their secrets. If REDIS_URL is set, the list also shows how much of its quota " +
        "each partner has used today, and when each secret was last used, which ingest records every few seconds.",
    )
    .option(
      "--json",
      "print a JSON array: id, name, enabled, held, test, kinds, rateLimit, bytesPerDay, country, secrets",
    )
    .action(async ({ json }) => {
      const listed = await listPartners(context);
      if (json) printJson(context.stdout, listed);
      else if (listed.length === 0) printLine(context.stdout, `There are no partners in ${partnersPath(context)} yet.`);
      else printTable(context.stdout, columns, listed.flatMap(toRows));
    });
}

/** A line of the list. */
type Row = ListedPartner & { secret: ListedSecret | undefined };

/** Also a partner without a secret has one. */
function toRows(partner: ListedPartner): Row[] {
  const secrets = partner.secrets.length === 0 ? [undefined] : partner.secrets;
  return secrets.map((secret) => ({ ...partner, secret }));
}

const columns: Column<Row>[] = [
  { header: "PARTNER", value: ({ id }) => id },
  { header: "NAME", value: ({ name }) => name },
  { header: "ENABLED", value: describeEnabled },
  { header: "KINDS", value: ({ kinds }) => describeKinds(kinds) },
  { header: "RATE", value: describeRate },
  { header: "QUOTA", value: describeUsedQuota },
  { header: "COUNTRY", value: ({ country }) => country ?? "" },
  { header: "SECRET", value: ({ secret }) => secret?.id ?? "none" },
  { header: "CREATED", value: ({ secret }) => secret?.createdAt.slice(0, 10) ?? "" },
  { header: "VALID", value: ({ secret }) => (secret ? describeValidity(secret) : "") },
  { header: "LAST USED", value: ({ secret }) => (secret ? describeUse(secret) : "") },
];

function describeEnabled({ enabled, held, test }: ListedPartner): string {
  const mark = test ? ", test" : "";
  if (!enabled) return `no${mark}`;
  return held ? `on hold${mark}` : `yes${mark}`;
}

function describeUsedQuota({ bytesPerDay, bytesToday }: ListedPartner): string {
  const quota = `${describeQuota(bytesPerDay)} a day`;
  return bytesToday === undefined ? quota : `${describeQuota(bytesToday)} of ${quota}`;
}

function describeUse({ lastUsedAt }: ListedSecret): string {
  if (lastUsedAt === undefined) return "unknown";
  return lastUsedAt === null ? "never" : toSeconds(lastUsedAt);
}

function describeValidity({ revoked, valid, expiresAt }: ListedSecret): string {
  if (revoked) return "revoked";
  if (expiresAt === null) return "yes";
  const end = new Date(expiresAt);
  if (Number.isNaN(end.getTime())) return "expired";
  return valid ? `until ${toSeconds(end)}` : `expired ${toSeconds(end)}`;
}
