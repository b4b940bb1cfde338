import type { Redis } from "ioredis";
import { queueKeys } from "./queue-name.ts";

/** BullMQ's lists of events, in the order in which events move, as far as possible, and what the events of each are. */
export const lists = [
  { name: "delayed", state: "delayed", isSorted: true },
  { name: "prioritized", state: "waiting", isSorted: true },
  { name: "wait", state: "waiting", isSorted: false },
  { name: "active", state: "held", isSorted: false },
  { name: "failed", state: "given-up", isSorted: true },
] as const;
export type List = (typeof lists)[number];

/** @returns how many events are in a list */
export function countList(redis: Redis, prefix: string, { name, isSorted }: List): Promise<number> {
  const key = queueKeys(prefix)(name);
  return isSorted ? redis.zcard(key) : redis.llen(key);
}
