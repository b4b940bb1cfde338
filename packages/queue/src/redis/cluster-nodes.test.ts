import { expect, test } from "vitest";
import { findSlotOwner, listNodes, parseClusterView, slotOf } from "./cluster-nodes.ts";

const asked = { host: "10.0.0.9", port: 7000 };
const up = "cluster_state:ok\r\ncluster_slots_assigned:16384\r\n";
const down = "cluster_state:fail\r\n";
const nodes = `a :7000@17000,redis-a myself,master - 0 0 1 connected 0-100 102 [103->-b] [104-<-c]
b 10.0.0.2:7001@17001,redis-b,tls-port=0 slave a 0 0 1 connected
c fd00::1:7002@17002 master,fail - 0 0 7 disconnected 103-16383
d :0@0 master,noaddr - 0 0 0 disconnected
e 10.0.0.5:7005@17005 handshake - 0 0 0 connected
`;
const view = (info: string, text = nodes) => parseClusterView(info, text, asked, { prefersNames: false });

test("a node's view has the slots that are served, not those that are being moved", () => {
  expect(view(up).nodes.map(({ ranges }) => ranges)).toEqual([
    [
      [0, 100],
      [102, 102],
    ],
    [],
    [[103, 16_383]],
  ]);
});

test("nodes without an address are left out, and one that does not know its own has the one that was asked", () => {
  expect(view(up).nodes.map(({ address }) => address)).toEqual([
    { host: "10.0.0.9", port: 7000 },
    { host: "10.0.0.2", port: 7001 },
    { host: "fd00::1", port: 7002 },
  ]);
});

test("names of hosts are used where certificates need them", () => {
  const named = parseClusterView(up, nodes, asked, { prefersNames: true });
  expect(named.nodes.map(({ address }) => address.host)).toEqual(["redis-a", "redis-b", "fd00::1"]);
});

test("failed nodes are not asked again", () => {
  expect(listNodes([view(up), view(up)]).map(({ port }) => port)).toEqual([7000, 7001]);
});

test("the later decision about a slot counts, unless the node that knows it says that it does not work", () => {
  const later = "a 10.0.0.4:7004@17004 master - 0 0 2 connected 0-102\n";
  expect(findSlotOwner([view(up), view(up, later)], 100)?.port).toBe(7004);
  expect(findSlotOwner([view(up, later), view(up)], 100)?.port).toBe(7004);
  expect(findSlotOwner([view(up), view(down, later)], 100)?.port).toBe(7000);
  expect(findSlotOwner([view(down, later)], 100)).toBeUndefined();
  expect(findSlotOwner([view(up)], 101)).toBeUndefined();
});

// From CLUSTER KEYSLOT.
test.each([
  ["123456789", 12_739],
  ["{booking-events}", 10_777],
  ["{booking-events}:x", 10_777],
  ["a{b}c", 3_300],
  ["{}x", 10_595],
  ["x}{y}z", 12_222],
  ["{a}{b}", 15_495],
  ["x{", 3_596],
  ["é{ü}", 9_552],
])("the slot of %s is that of Redis", (key, slot) => {
  expect(slotOf(key)).toBe(slot);
});
