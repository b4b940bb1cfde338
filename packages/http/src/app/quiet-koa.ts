import Koa from "koa";

/**
 * A work-around for koa 3.3.0, `lib/application.js`, `handleRequest`: Koa listens for the end of each response and for
 * socket errors (on-finished). Node's server reports these errors itself, and the listeners stay in memory until the
 * next full garbage collection. The report to Koa says what leaving them out saves: docs/upstream.md.
 *
 * `handleRequest` is not a documented part of Koa.
 */
export class QuietKoa<State> extends Koa<State> {
  handleRequest(ctx: Koa.Context, run: (ctx: Koa.Context) => Promise<void>): Promise<void> {
    return run(ctx).catch((error) => void this.emit("error", error));
  }
}
