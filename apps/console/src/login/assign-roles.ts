import { type Role, roles } from "./roles.ts";

/** Who has which role: names, and groups as `group:NAME`. */
export type RoleLists = Record<Role, readonly string[]>;

export interface Identity {
  /** By which the lists know somebody. */
  name: string;
  groups: readonly string[];
}

/**
 * Whoever has any role may look. Names are compared exactly: what counts as the same to us may be two people to the
 * provider.
 */
export function assignRoles({ name, groups }: Identity, lists: RoleLists): Role[] {
  // A provider could give somebody the name of a group.
  const isPerson = !name.startsWith(groupPrefix);
  const entries = new Set([...(isPerson ? [name] : []), ...groups.map((group) => groupPrefix + group)]);
  const listed = roles.filter((role) => lists[role].some((entry) => entries.has(entry)));
  return listed.length === 0 ? [] : roles.filter((role) => role === "viewer" || listed.includes(role));
}

const groupPrefix = "group:";
