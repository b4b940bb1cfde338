import type { Context } from "koa";
import { Refusal } from "./refusal.ts";

/** Reads what a form of ours has posted. */
export async function readForm(ctx: Context, maxBytes: number): Promise<URLSearchParams> {
  if (ctx.is("application/x-www-form-urlencoded") === false)
    throw new Refusal(415, "Not a form", "This page takes only its own form.");
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of ctx.req as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes)
      throw new Refusal(413, "Too much", `The form has more than ${maxBytes / 1_024} KiB. Shorten what you entered.`);
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString());
}
