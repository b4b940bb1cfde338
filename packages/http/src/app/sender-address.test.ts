import type { IncomingMessage } from "node:http";
import { describe, expect, test } from "vitest";
import { findSenderAddress } from "./sender-address.ts";

const proxy = "192.0.2.100";

function find(forwardedFor: string | undefined, trustedProxyHops = 1) {
  const req = { headers: { "x-forwarded-for": forwardedFor }, socket: { remoteAddress: proxy } };
  return findSenderAddress(req as unknown as IncomingMessage, trustedProxyHops);
}

describe("the address that the proxy wrote is read", () => {
  test.each([
    ["198.51.100.7", "198.51.100.7"],
    ["198.51.100.7:443", "198.51.100.7"],
    ['"198.51.100.7:443"', "198.51.100.7"],
    ["[198.51.100.7]:443", "198.51.100.7"],
    ["2001:db8::1", "2001:db8::1"],
    ["2001:DB8:0:0::1", "2001:db8::1"],
    ["[2001:db8::1]", "2001:db8::1"],
    ["[2001:db8::1]:443", "2001:db8::1"],
    ['"[2001:db8::1]:443"', "2001:db8::1"],
    ["::ffff:198.51.100.7", "198.51.100.7"],
    ["::ffff:c633:6407", "198.51.100.7"],
    ["[::ffff:198.51.100.7]:443", "198.51.100.7"],
    ["fe80::1%eth0", "fe80::1"],
    ["[fe80::1%25eth0]:443", "fe80::1"],
  ])("in the form %s", (entry, ip) => {
    for (const list of [entry, ` ${entry} `, `203.0.113.9, ${entry}`, `nonsense,${entry}`]) {
      expect([list, find(list)]).toEqual([list, { ip, isAddressUnreadable: false }]);
    }
  });

  test("counted from the right, by the number of trusted proxies", () => {
    const list = "203.0.113.9, 198.51.100.7:1, [2001:db8::1]:2";
    expect([0, 1, 2, 3, 4].map((hops) => find(list, hops).ip)).toEqual([
      ...[proxy, "2001:db8::1", "198.51.100.7", "203.0.113.9", "203.0.113.9"],
    ]);
  });
});

describe("who sends no readable address counts as the proxy", () => {
  test.each([
    ["unknown"],
    ["_hidden"],
    ["198.51.100.7,"],
    ["198.51.100"],
    ["010.0.0.1"],
    ["0x7f.1"],
    ["2130706433"],
    ["256.1.1.1:443"],
    ["198.51.100.7:"],
    ["198.51.100.7:https"],
    ["198.51.100.7:123456"],
    ["198.51.100.7%eth0"],
    ["someone@198.51.100.7"],
    ["198.51.100.7/32"],
    ["for=198.51.100.7"],
    ["[]"],
    ["[2001:db8::1"],
    ["2001:db8::1]:443"],
    ["[2001:db8::1]443"],
    ['"198.51.100.7'],
    [`${"1".repeat(8_000)}:1`],
  ])("if it is %s", (entry) => {
    expect(find(entry)).toEqual({ ip: proxy, isAddressUnreadable: true });
  });

  test("if there is none, which is how the proxy itself asks", () => {
    for (const none of [undefined, ""]) expect(find(none)).toEqual({ ip: proxy, isAddressUnreadable: false });
  });
});
