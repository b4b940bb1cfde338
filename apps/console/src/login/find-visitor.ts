import type { Context } from "koa";
import { assignRoles } from "./assign-roles.ts";
import type { Logins } from "./create-logins.ts";
import { readIdentityHeader } from "./identity-header.ts";
import type { Visitor } from "./roles.ts";

/** @returns undefined: nobody has logged in here, and no proxy says who it is */
export function findVisitor(ctx: Context, { sessions, header, lists }: Logins): Visitor | undefined {
  const visitor = sessions.read(ctx);
  if (visitor !== undefined || header === undefined) return visitor;
  const identity = readIdentityHeader(ctx.req, header);
  return identity && { name: identity.name, roles: assignRoles(identity, lists) };
}
