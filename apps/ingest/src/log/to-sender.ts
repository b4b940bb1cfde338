import ipaddr from "ipaddr.js";

/**
 * The part of an address that its sender can't choose: a whole IPv4 address, the first half of an IPv6 one. What is no
 * address came from a client that wrote X-Forwarded-For itself; all such are one sender, "none".
 */
export function toSender(ip: string): string {
  if (!ipaddr.isValid(ip)) return "none";
  // An IPv4 client of a socket that listens for both comes as ::ffff:192.0.2.1.
  const address = ipaddr.process(ip);
  return address instanceof ipaddr.IPv6 ? address.parts.slice(0, 4).join(":") : address.toString();
}
