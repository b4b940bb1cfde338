import type { Context } from "koa";
import { Refusal } from "./refusal.ts";

const maxBytes = 64 * 1_024;

/** Reads what a form of ours has posted. */
export async function readForm(ctx: Context): Promise<URLSearchParams> {
  if (ctx.is("application/x-www-form-urlencoded") === false)
    throw new Refusal(415, "Not a form", "This page takes only its own form.");
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of ctx.req as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes)
      throw new Refusal(413, "Too much", "The form has more than 64 KiB. Shorten what you entered.");
    chunks.push(chunk);
  }
  return new URLSearchParams(Buffer.concat(chunks).toString());
}
