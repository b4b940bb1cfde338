/**
 * What a visitor may do. A `viewer` sees everything, with guests' values masked; an `operator` also acts; `privacy` may
 * have guests' values shown, with a reason.
 */
export const roles = ["viewer", "operator", "privacy"] as const;

export type Role = (typeof roles)[number];

/** Who asks, by a login. */
export interface Visitor {
  /** It is recorded as who acts. */
  name: string;
  roles: readonly Role[];
}
