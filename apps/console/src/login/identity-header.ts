import type { IncomingMessage } from "node:http";
import { BlockList, isIP } from "node:net";
import type { Identity } from "./assign-roles.ts";
import { readName } from "./read-name.ts";

export interface IdentityHeaders {
  /** In lower case, as Node has names of headers. */
  name: string;
  groups: string | undefined;
  /** From whose addresses they count. */
  proxies: BlockList;
}

/**
 * Who asks, as a proxy says that we trust.
 *
 * @returns undefined: no such proxy says it, or it says more than one name
 */
export function readIdentityHeader(req: IncomingMessage, headers: IdentityHeaders): Identity | undefined {
  const address = req.socket.remoteAddress ?? "";
  if (isIP(address) === 0 || !headers.proxies.check(address, familyOf(address))) return undefined;
  // A proxy that adds its own instead of replacing the client's would make two of them.
  const names = req.headersDistinct[headers.name] ?? [];
  const groups = (headers.groups === undefined ? undefined : req.headersDistinct[headers.groups]) ?? [];
  const name = readName(names[0]);
  if (names.length !== 1 || groups.length > 1 || name === undefined) return undefined;
  return { name, groups: splitGroups(groups[0] ?? "") };
}

/** @param ranges addresses, and ranges such as `10.0.4.0/24` */
export function toProxies(ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    list.addSubnet(address, Number(bits ?? (isIP(address) === 6 ? 128 : 32)), familyOf(address));
  }
  return list;
}

function familyOf(address: string): "ipv4" | "ipv6" {
  return isIP(address) === 6 ? "ipv6" : "ipv4";
}

function splitGroups(text: string): string[] {
  return text
    .split(",")
    .map((group) => group.trim())
    .filter((group) => group !== "");
}
