import { createHash, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

const { partners } = JSON.parse(readFileSync(process.env["PARTNERS_FILE"] ?? "", "utf8")) as {
  partners: { id: string; secrets: { sha256: string }[] }[];
};
const digests = new Map(partners.flatMap(({ id, secrets }) => secrets.map(({ sha256 }) => [sha256, id])));

/** @returns the id of the partner to whom the secret belongs */
export function findPartner(secret: string): string | undefined {
  const digest = createHash("sha256").update(secret).digest("hex");
  const partner = digests.get(digest);
  return partner !== undefined && timingSafeEqual(Buffer.from(digest), Buffer.from(digest)) ? partner : undefined;
}
