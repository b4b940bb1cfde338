import { isRevoked, isValid, type Partner, type PartnerSecret } from "@booking-events/partners";
import { type LastUses, readBytesToday, readLastUses } from "@booking-events/queue";
import type { Context } from "../context.ts";
import { readFile } from "../services/partners-file.ts";
import { knowsRedis, readRedisSettings } from "../services/queue.ts";

export interface ListedPartner extends Omit<Partner, "secrets"> {
  /** Of payloads. Undefined: Redis was not asked, or does not answer. */
  bytesToday?: number;
  secrets: ListedSecret[];
}

export interface ListedSecret extends Pick<PartnerSecret, "id" | "createdAt" | "expiresAt"> {
  revoked: boolean;
  valid: boolean;
  /** Null: never. Undefined: Redis was not asked, or does not answer. */
  lastUsedAt?: Date | null;
}

/** Lists the partners of the file without digests, and with what Redis knows about them. */
export async function listPartners(context: Context): Promise<ListedPartner[]> {
  const { partners } = readFile(context, (file) => file);
  const usage = await readUsageIfPossible(context, partners);
  const now = context.now();
  return partners.map((partner) => toListed(partner, now, usage));
}

interface Usage {
  lastUses: LastUses;
  bytesToday: Map<string, number>;
}

/** The list is useful without Redis, so a missing or broken Redis is not a failure. */
async function readUsageIfPossible({ environment, notify }: Context, partners: Partner[]): Promise<Usage | undefined> {
  if (!knowsRedis(environment)) return undefined;
  const settings = readRedisSettings(environment);
  const ids = partners.map(({ id }) => id);
  try {
    const [lastUses, bytesToday] = await Promise.all([readLastUses(settings), readBytesToday(settings, ids)]);
    return { lastUses, bytesToday };
  } catch {
    notify("Redis does not answer, so the list does not show when secrets were last used, or the bytes of today.");
    return undefined;
  }
}

function toListed(partner: Partner, now: Date, usage: Usage | undefined): ListedPartner {
  const secrets = partner.secrets.map((secret) => ({
    id: secret.id,
    createdAt: secret.createdAt,
    expiresAt: secret.expiresAt,
    revoked: isRevoked(secret),
    valid: isValid(secret, now),
    ...(usage && { lastUsedAt: usage.lastUses.of(partner.id, secret.id) }),
  }));
  return { ...partner, ...(usage && { bytesToday: usage.bytesToday.get(partner.id) ?? 0 }), secrets };
}
