import { randomUUID } from "node:crypto";
import type { Context } from "koa";
import type { SealedCookies } from "./cookies.ts";
import { type Role, roles, type Visitor } from "./roles.ts";

const cookie = "console";
const sessionMs = 8 * 3_600_000;
const maxEnded = 10_000;

interface Session extends Visitor {
  id: string;
  endsAtMs: number;
}

/** Remembers in a cookie who has logged in, for eight hours. */
export class Sessions {
  readonly #cookies: SealedCookies;
  readonly #now: () => Date;
  /** When they would have ended, by id: those whose visitor has logged out, so that no copy of the cookie is good. */
  readonly #ended = new Map<string, number>();

  constructor(cookies: SealedCookies, now: () => Date) {
    this.#cookies = cookies;
    this.#now = now;
  }

  begin(ctx: Context, { name, roles }: Visitor): void {
    const session: Session = { id: randomUUID(), name, roles, endsAtMs: this.#now().getTime() + sessionMs };
    this.#cookies.set(ctx, cookie, session, sessionMs);
  }

  /** @returns undefined: nobody has logged in, or too long ago, or has logged out */
  read(ctx: Context): Visitor | undefined {
    const session = this.#readSession(ctx);
    // A cookie of another release may name a role that is no more.
    return session && { name: session.name, roles: session.roles.filter((role): role is Role => roles.includes(role)) };
  }

  end(ctx: Context): void {
    const session = this.#readSession(ctx);
    if (session !== undefined) this.#rememberEnded(session);
    this.#cookies.clear(ctx, cookie);
  }

  #readSession(ctx: Context): Session | undefined {
    const session = this.#cookies.read(ctx, cookie) as Session | undefined;
    if (session === undefined || session.endsAtMs <= this.#now().getTime()) return undefined;
    return this.#ended.has(session.id) ? undefined : session;
  }

  #rememberEnded({ id, endsAtMs }: Session): void {
    const nowMs = this.#now().getTime();
    for (const [ended, wouldEndAtMs] of this.#ended) {
      if (wouldEndAtMs <= nowMs || this.#ended.size >= maxEnded) this.#ended.delete(ended);
    }
    this.#ended.set(id, endsAtMs);
  }
}
