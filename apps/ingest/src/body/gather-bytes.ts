import type Koa from "koa";
import { koaBody } from "koa-body";

/** The type under which koa-body reads every body. */
const gatheredType = "text/plain";

/**
 * Returns a function that reads the bytes of a body, whatever its headers say about them.
 *
 * A work-around for koa-body 8.0.1, which has no way to do only this. Its own decoders guess where we must refuse: they
 * replace invalid UTF-8, drop form fields after the first 1,000 keys, and turn repeated fields into arrays. And it checks
 * Content-Type and Content-Encoding more strictly than we do, so they are replaced. The report to koa-body is in
 * docs/upstream.md.
 *
 * @throws what raw-body throws, such as an error of type `entity.too.large`
 */
export function createByteGatherer(limitBytes: number): (ctx: Koa.Context) => Promise<Buffer> {
  const gatherBytes = koaBody({
    text: true,
    textTypes: [gatheredType],
    textLimit: limitBytes,
    // An empty encoding makes raw-body return the bytes unchanged.
    encoding: "",
    json: false,
    urlencoded: false,
    multipart: false,
  });

  return async function gather(ctx) {
    ctx.req.headers["content-type"] = gatheredType;
    delete ctx.req.headers["content-encoding"];
    await gatherBytes(ctx, doNothing);
    const body = ctx.request.body as unknown as Buffer;
    // Guests' data would otherwise stay in memory as long as the request.
    ctx.request.body = null;
    return body;
  };
}

async function doNothing(): Promise<void> {}
