import type { Context } from "koa";
import { open, seal } from "./seal.ts";

/**
 * Cookies that only this process, or one with the same key, can have written. Over https their names begin with
 * `__Host-`, so no other host or path of the domain can set them. A browser does not take such cookies over http, which
 * we allow on this machine only.
 */
export class SealedCookies {
  readonly #key: Buffer;

  constructor(key: Buffer) {
    this.#key = key;
  }

  set(ctx: Context, name: string, value: unknown, maxAgeMs: number): void {
    this.#write(ctx, name, seal(this.#key, name, value), maxAgeMs);
  }

  read(ctx: Context, name: string): unknown {
    const sealed = ctx.cookies.get(nameFor(ctx, name));
    return sealed === undefined ? undefined : open(this.#key, name, sealed);
  }

  clear(ctx: Context, name: string): void {
    this.#write(ctx, name, "", 0);
  }

  #write(ctx: Context, name: string, value: string, maxAge: number): void {
    const secure = !isLocal(ctx);
    // TLS ends at a proxy.
    ctx.cookies.secure = secure;
    ctx.cookies.set(nameFor(ctx, name), value, { httpOnly: true, secure, sameSite: "lax", path: "/", maxAge });
  }
}

const nameFor = (ctx: Context, name: string) => (isLocal(ctx) ? name : `__Host-${name}`);

function isLocal(ctx: Context): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(ctx.hostname);
}
