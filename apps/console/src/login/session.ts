import type { Context } from "koa";
import type { SealedCookies } from "./cookies.ts";
import { type Role, roles, type Visitor } from "./roles.ts";

const cookie = "console";
const sessionMs = 8 * 3_600_000;

/** Remembers in a cookie who has logged in, for eight hours. */
export class Sessions {
  readonly #cookies: SealedCookies;
  readonly #now: () => Date;

  constructor(cookies: SealedCookies, now: () => Date) {
    this.#cookies = cookies;
    this.#now = now;
  }

  begin(ctx: Context, { name, roles }: Visitor): void {
    const endsAtMs = this.#now().getTime() + sessionMs;
    this.#cookies.set(ctx, cookie, { name, roles, endsAtMs }, sessionMs);
  }

  /** @returns undefined: nobody has logged in, or too long ago */
  read(ctx: Context): Visitor | undefined {
    const session = this.#cookies.read(ctx, cookie) as (Visitor & { endsAtMs: number }) | undefined;
    if (session === undefined || session.endsAtMs <= this.#now().getTime()) return undefined;
    // A cookie of another release may name a role that is no more.
    return { name: session.name, roles: session.roles.filter((role): role is Role => roles.includes(role)) };
  }

  end(ctx: Context): void {
    this.#cookies.clear(ctx, cookie);
  }
}
