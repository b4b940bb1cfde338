import { expect, test } from "vitest";
import { findUrlFault } from "./find-url-fault.ts";

test.each([
  ["", "no-url"],
  ["hooks.example.com", "no-url"],
  ["ftp://hooks.example.com/", "no-url"],
  ["file:///etc/passwd", "no-url"],
  ["http://hooks.example.com/", "not-https"],
  ["https://10.0.0.1/", "private-address"],
  ["https://[::1]:8443/", "private-address"],
  ["https://hooks.example.com/", undefined],
  ["https://8.8.8.8/", undefined],
])("%s: %s", (url, fault) => {
  expect(findUrlFault(url, { allowPrivate: false })).toBe(fault);
});

test("a setting allows http and private addresses, and no other protocol", () => {
  expect(findUrlFault("http://127.0.0.1:1/", { allowPrivate: true })).toBeUndefined();
  expect(findUrlFault("gopher://127.0.0.1:1/", { allowPrivate: true })).toBe("no-url");
});

test("a proxy decides about addresses, and not about http", () => {
  const network = { allowPrivate: false, proxyUrl: "http://proxy:3128" };
  expect(findUrlFault("https://10.0.0.1/", network)).toBeUndefined();
  expect(findUrlFault("http://10.0.0.1/", network)).toBe("not-https");
});
