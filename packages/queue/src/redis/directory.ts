import type { RedisAddress } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import type { AccessOptions } from "./access.ts";

/** How to ask the servers of a cluster, or sentinels, and what their answers mean. */
export interface Directory<View> {
  /** The servers that the operator named. */
  named: readonly RedisAddress[];
  access: AccessOptions;
  ask(redis: Redis, asked: RedisAddress): Promise<View>;
  /** Further servers that can be asked. */
  listOthers(views: readonly View[]): RedisAddress[];
  findPrimary(views: readonly View[], prefix: string): RedisAddress | undefined;
  /** Undefined: there is no need to ask. */
  isUndisputed?(views: readonly View[], primary: RedisAddress): boolean;
}

/** No node of a cluster that answers serves the slot, or no sentinel knows a primary. */
export class NoPrimary extends Error {
  override name = "NoPrimary";
  readonly code = "NO_PRIMARY";
}
