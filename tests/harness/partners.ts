import { defaultBytesPerDay, digestSecret, type Partner, type PartnersFile } from "@booking-events/partners";

/** Easy to find in a log, header or error where it must not be. */
export const acmeSecret = "acme-secret-canary-5f2c81";

export function partner(id: string, secrets: Record<string, string | null>, more: Partial<Partner> = {}): Partner {
  return {
    id,
    name: id,
    enabled: true,
    kinds: ["create", "update", "delete"],
    rateLimit: { perSecond: 1_000, burst: 1_000 },
    bytesPerDay: defaultBytesPerDay,
    held: false,
    test: false,
    secrets: Object.entries(secrets).map(([secret, expiresAt], index) => ({
      id: `s${index + 1}`,
      sha256: digestSecret(secret),
      createdAt: "2026-01-01T00:00:00Z",
      expiresAt,
    })),
    ...more,
  };
}

/** For each way in which a secret is accepted or refused, one partner. */
export const partnersFile: PartnersFile = {
  partners: [
    partner("acme", { [acmeSecret]: null, "acme-expired": "2026-01-02T00:00:00Z" }),
    partner("zenith", { "zenith-secret": "2999-01-01T00:00:00Z" }),
    partner("closed", { "closed-secret": null }, { enabled: false }),
    partner("kept-waiting", { "held-secret": null }, { held: true }),
    partner("updater", { "updater-secret": null }, { kinds: ["update"] }),
  ],
};
