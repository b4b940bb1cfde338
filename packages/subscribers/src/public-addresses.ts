import { lookup as resolveName } from "node:dns";
import { isIP, type LookupFunction } from "node:net";
import ipaddr from "ipaddr.js";

/** What a name is resolved by: node:dns, or a test's own. */
export type Resolve = typeof resolveName;

export class PrivateAddressError extends Error {
  override name = "PrivateAddressError";
  readonly code = "private-address";
}

/** IPv6 has addresses of the public internet only there. Everything else is reserved or for special purposes. */
const globalUnicast = ipaddr.parseCIDR("2000::/3");

/**
 * Returns whether an address is one of the public internet: not of a private network, this host, a cloud's metadata
 * service, or any other special purpose. An IPv4 address within an IPv6 one counts as itself, and the ranges that
 * translate or tunnel IPv4 are not public.
 */
export function isPublicAddress(address: string): boolean {
  if (isIP(address) === 0) return false;
  const parsed = ipaddr.process(address);
  return parsed.range() === "unicast" && (parsed.kind() === "ipv4" || parsed.match(globalUnicast));
}

/**
 * Resolves names for connections, and refuses a name if any of its addresses is not public. The connection goes to the
 * addresses that were checked, so a name that is resolved to another one a moment later gains nothing.
 *
 * Concurrent look-ups of a name share one, since Node resolves four names at a time: one name that its server leaves
 * unanswered would stop the posts to all others.
 */
export function createPublicLookup(resolve: Resolve = resolveName): LookupFunction {
  const shared = new Map<string, Promise<{ address: string; family: number }[]>>();

  function resolveOnce(host: string): Promise<{ address: string; family: number }[]> {
    const underWay = shared.get(host);
    if (underWay !== undefined) return underWay;
    const resolving = new Promise<{ address: string; family: number }[]>((resolvePromise, reject) => {
      resolve(host, { all: true }, (error, addresses) => (error === null ? resolvePromise(addresses) : reject(error)));
    }).finally(() => shared.delete(host));
    shared.set(host, resolving);
    return resolving;
  }

  return (host, { all = false }, callback) => {
    resolveOnce(host)
      .then((addresses) => {
        if (!addresses.every(({ address }) => isPublicAddress(address)))
          throw new PrivateAddressError("The name has an address that is not public.");
        return addresses;
      })
      .then(
        (addresses) =>
          all ? callback(null, addresses) : callback(null, addresses[0]?.address ?? "", addresses[0]?.family),
        (error: NodeJS.ErrnoException) => callback(error, []),
      );
  };
}
