import { digestSecret, type PartnersFile } from "@booking-events/partners";

/** The text of a partners file with one partner, who may do everything. */
export function partnersFileFor(id: string, secret: string): string {
  const file: PartnersFile = {
    partners: [
      {
        id,
        name: id,
        enabled: true,
        kinds: ["create", "update", "delete"],
        rateLimit: { perSecond: 200, burst: 400 },
        secrets: [{ id: "s1", sha256: digestSecret(secret), createdAt: "2026-11-20T00:00:00Z", expiresAt: null }],
      },
    ],
  };
  return JSON.stringify(file);
}
