import { isIP } from "node:net";
import { isPublicAddress } from "./public-addresses.ts";

export type UrlFault = "no-url" | "not-https" | "private-address";

/**
 * Returns why nothing is posted to a URL, as far as it tells by itself; undefined: it does not. What its name leads to is
 * checked at each connection.
 *
 * @param network.allowPrivate it may have http, and an address that is not public
 * @param network.proxyUrl a proxy that posts go through: it decides about addresses
 */
export function findUrlFault(
  url: string,
  { allowPrivate, proxyUrl }: { allowPrivate: boolean; proxyUrl?: string | undefined },
): UrlFault | undefined {
  if (!URL.canParse(url) || !/^https?:/i.test(url)) return "no-url";
  const { protocol, hostname } = new URL(url);
  if (allowPrivate) return undefined;
  if (protocol !== "https:") return "not-https";
  // Node looks up names only, so the check at the connection does not see an address.
  const host = hostname.replace(/^\[(.*)\]$/, "$1");
  return proxyUrl === undefined && isIP(host) !== 0 && !isPublicAddress(host) ? "private-address" : undefined;
}
