import { formatAddress, type RedisAddress, type RedisSentinels } from "@booking-events/runtime";
import { toAccessOptions } from "./access.ts";
import { type Directory, NoPrimary } from "./directory.ts";

/** What one sentinel knows of the primary. */
export interface SentinelView {
  primary: RedisAddress;
  /** A higher one is a later decision about which server is the primary. */
  configEpoch: number;
  /** Whether it takes the primary for dead. */
  isDown: boolean;
  /** Whether it is promoting a replica. */
  isReplacing: boolean;
}

export function sentinelDirectory(servers: RedisSentinels): Directory<SentinelView> {
  return {
    named: servers.sentinels,
    access: toAccessOptions({
      username: servers.sentinelUsername,
      password: servers.sentinelPassword,
      isEncrypted: servers.isEncrypted,
    }),
    async ask(redis) {
      const [address, state] = (await Promise.all([
        redis.call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", servers.name),
        redis.call("SENTINEL", "MASTER", servers.name),
      ])) as [[host: string, port: string] | null, string[]];
      if (address === null) throw new NoPrimary("The sentinel does not know the name.");
      const read = (field: string) => state[state.indexOf(field) + 1] ?? "";
      const flags = read("flags").split(",");
      return {
        primary: { host: address[0], port: Number(address[1]) },
        configEpoch: Number(read("config-epoch")),
        isDown: flags.includes("s_down") || flags.includes("o_down"),
        isReplacing: flags.includes("failover_in_progress"),
      };
    },
    // An operator names all of them.
    listOthers: () => [],
    findPrimary: (views) => findLatest(views)?.primary,
    isUndisputed(views, primary) {
      const isSame = (view: SentinelView | undefined) =>
        view !== undefined && formatAddress(view.primary) === formatAddress(primary);
      const agreeing = views.filter((view) => isSame(view) && !view.isDown).length;
      const isReplaced = views.some(({ isReplacing }) => isReplacing) || !isSame(findLatest(views));
      return !isReplaced && agreeing > servers.sentinels.length / 2;
    },
  };
}

function findLatest(views: readonly SentinelView[]): SentinelView | undefined {
  return views.reduce<SentinelView | undefined>(
    (latest, view) => (latest === undefined || view.configEpoch > latest.configEpoch ? view : latest),
    undefined,
  );
}
