import type { IncomingMessage } from "node:http";
import { isIP } from "node:net";
import ipaddr from "ipaddr.js";

export interface SenderAddress {
  /** undefined if the client has disconnected. */
  ip: string | undefined;
  /** The last trusted proxy wrote something else than an address, so `ip` is that of the nearest one. */
  isAddressUnreadable: boolean;
}

/**
 * Finds the address of the client behind the trusted proxies, in the form that RFC 5952 recommends.
 *
 * @param trustedProxyHops how many of the last addresses in X-Forwarded-For proxies wrote; addresses before them may be
 *   the client's invention
 */
export function findSenderAddress(req: IncomingMessage, trustedProxyHops: number): SenderAddress {
  const nearest = req.socket.remoteAddress;
  const forwarded = req.headers["x-forwarded-for"];
  // Node joins several of these headers, so there is no list.
  if (trustedProxyHops === 0 || typeof forwarded !== "string" || forwarded === "") {
    return { ip: nearest, isAddressUnreadable: false };
  }
  const entries = forwarded.split(",");
  const ip = readAddress(entries[Math.max(0, entries.length - trustedProxyHops)] ?? "");
  return { ip: ip ?? nearest, isAddressUnreadable: ip === undefined };
}

/**
 * Reads `198.51.100.7`, `198.51.100.7:443`, `2001:db8::1`, `[2001:db8::1]:443`, each also in quotes, as load balancers write
 * them. Zones are left out, because the sender of a link-local address does not choose its proxy's interface.
 *
 * Node's `SocketAddress.parse` is too lenient: it takes what a URL may have for a host.
 */
function readAddress(entry: string): string | undefined {
  const text = entry.trim().replace(/^"(.*)"$/, "$1");
  const [, inBrackets, beforePort] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/.exec(text) ?? [];
  const address = inBrackets ?? beforePort ?? text;
  if (isIP(address) === 0) return undefined;
  // An IPv4 address such as ::ffff:192.0.2.1 becomes 192.0.2.1.
  return ipaddr.process(address.replace(/%.*$/, "")).toString();
}
