import ipaddr from "ipaddr.js";

/**
 * Returns the part of an address that its sender cannot choose: a complete IPv4 address, or the first half of an IPv6
 * address. Clients that have disconnected have none, and count as one sender, "none".
 */
export function toSender(ip: string): string {
  if (!ipaddr.isValid(ip)) return "none";
  // On a socket that listens for IPv4 and IPv6, an IPv4 client has an address such as ::ffff:192.0.2.1.
  const address = ipaddr.process(ip);
  return address instanceof ipaddr.IPv6 ? address.parts.slice(0, 4).join(":") : address.toString();
}
