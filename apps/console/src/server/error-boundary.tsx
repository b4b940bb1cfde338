import { OperationFailure } from "@booking-events/operations";
import { DeadlineExceeded, type Logger } from "@booking-events/runtime";
import type { Context, Next } from "koa";
import { Blank } from "../page/layout.tsx";
import { Refusal } from "./refusal.ts";
import { sendPage } from "./send-page.tsx";

/** The only exit for errors: each becomes a page that says what happened. */
export function errorBoundary(logger: Logger) {
  return async (ctx: Context, next: Next): Promise<void> => {
    try {
      await next();
      if (ctx.status === 404 && ctx.body == null) throw notFound();
    } catch (error) {
      const refusal = toRefusal(error);
      if (refusal.status === 500) logger.error({ err: error }, "a page failed");
      sendPage(
        ctx,
        <Blank title={refusal.title}>
          <p>{refusal.message}</p>
          <p>
            <a href="/">Go to the overview</a>
          </p>
        </Blank>,
      );
      ctx.status = refusal.status;
    }
  };
}

const notFound = () => new Refusal(404, "No such page", "There is nothing at this address. Check how it is spelt.");

function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof OperationFailure)
    return error.cause === undefined
      ? new Refusal(422, "Not possible", error.message)
      : new Refusal(503, "Not available now", error.message);
  if (error instanceof DeadlineExceeded)
    return new Refusal(
      503,
      "Too slow",
      "This took longer than ten seconds. It may still be going on. Look before you try again.",
    );
  // Of koa and its router: a path that is not valid, a body that was cut off.
  const { status } = error as { status?: number };
  if (status !== undefined && status >= 400 && status < 500)
    return new Refusal(status, "Not understood", "The request is not valid. Check the address.");
  return new Refusal(500, "Something went wrong", "This is a mistake in the console. Its log says more.");
}
