import type { LookupAddress } from "node:dns";
import { expect, test } from "vitest";
import { createPublicLookup, isPublicAddress, type Resolve } from "./public-addresses.ts";

test.each([
  ...["0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1"],
  ...["172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1"],
  ...["198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"],
  ...["::", "::1", "::2", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"],
  ...["::ffff:a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2002:7f00:1::"],
  ...["3fff::1", "5f00::1", "4000::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1"],
  ...["", "localhost", "1.2.3", "0x7f.1", "127.1", "::g"],
])("%j is not public", (address) => {
  expect(isPublicAddress(address)).toBe(false);
});

test.each(["8.8.8.8", "172.32.0.1", "100.128.0.1", "::ffff:8.8.8.8", "2606:4700:4700::1111", "2a00:1450::1"])(
  "%s is public",
  (address) => {
    expect(isPublicAddress(address)).toBe(true);
  },
);

/** Answers each look-up with the next list of addresses. */
function resolveBy(...answers: (string[] | Error)[]) {
  const asked: string[] = [];
  const resolve = ((host: string, _: object, callback: (error: Error | null, found: LookupAddress[]) => void) => {
    asked.push(host);
    const answer = answers[asked.length - 1] ?? [];
    setImmediate(() => {
      if (answer instanceof Error) callback(answer, []);
      else
        callback(
          null,
          answer.map((address) => ({ address, family: address.includes(":") ? 6 : 4 })),
        );
    });
  }) as unknown as Resolve;
  return { asked, resolve };
}

type Lookup = ReturnType<typeof createPublicLookup>;
const lookUp = (lookup: Lookup, options: object) =>
  new Promise((resolve, reject) => {
    lookup("example.com", options, (error, found, family) =>
      error === null ? resolve(family === undefined ? found : [found, family]) : reject(error),
    );
  });

test("the addresses that were checked are those that are used, in both forms of an answer", async () => {
  const { asked, resolve } = resolveBy(["8.8.8.8", "2606:4700::1"], ["8.8.4.4"]);
  const lookup = createPublicLookup(resolve);
  expect(await lookUp(lookup, { all: true })).toEqual([
    { address: "8.8.8.8", family: 4 },
    { address: "2606:4700::1", family: 6 },
  ]);
  expect(await lookUp(lookup, {})).toEqual(["8.8.4.4", 4]);
  expect(asked).toHaveLength(2);
});

test("a name is refused if one of its addresses is private, also when it was public a moment ago", async () => {
  const lookup = createPublicLookup(resolveBy(["8.8.8.8"], ["127.0.0.1"], ["8.8.8.8", "10.0.0.1"]).resolve);
  await lookUp(lookup, { all: true });
  await expect(lookUp(lookup, { all: true })).rejects.toMatchObject({ code: "private-address" });
  await expect(lookUp(lookup, { all: true })).rejects.toMatchObject({ code: "private-address" });
});

test("concurrent look-ups of a name share one, whose fault they get", async () => {
  const { asked, resolve } = resolveBy(Object.assign(new Error(), { code: "ENOTFOUND" }), ["8.8.8.8"]);
  const lookup = createPublicLookup(resolve);
  const failed = await Promise.allSettled([lookUp(lookup, { all: true }), lookUp(lookup, { all: true })]);
  expect(failed).toMatchObject([{ reason: { code: "ENOTFOUND" } }, { reason: { code: "ENOTFOUND" } }]);
  expect(await lookUp(lookup, { all: true })).toHaveLength(1);
  expect(asked).toHaveLength(2);
});
