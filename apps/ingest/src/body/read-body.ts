import type { IncomingMessage } from "node:http";
import type Koa from "koa";
import { koaBody } from "koa-body";
import { bodyTooLarge, Refusal, twoContentTypes, unsupportedEncoding, unsupportedType } from "../http/answers.ts";
import { hasBody } from "../http/send-answer.ts";
import { bodyTypeOf } from "./content-type.ts";
import { type BodyObject, decodeForm, decodeJson, decodeUtf8 } from "./decode-body.ts";
import { headerValues } from "./header-values.ts";

export type ReadBody = (ctx: Koa.Context) => Promise<Body>;

/** A body that has arrived, and is not yet decoded. */
export interface Body {
  bytes: number;
  /**
   * An absent or empty body is an empty object.
   *
   * @throws Refusal that says why it can't be read as one object
   */
  decode: () => BodyObject;
}

const noBody: Body = { bytes: 0, decode: () => ({}) };

/** The client went away in the middle of its request: nobody is left to answer. */
export class ClientGone extends Error {
  override name = "ClientGone";
}

/** What koa-body takes each body for. */
const gatheredType = "text/plain";

/**
 * koa-body only gathers the bytes, within the limit. Its own decoders guess where we must refuse: they replace invalid
 * UTF-8, cut a form after 1,000 keys, and make arrays of repeated ones.
 */
export function createBodyReader(limitBytes: number): ReadBody {
  const gatherBytes = koaBody({
    text: true,
    textTypes: [gatheredType],
    textLimit: limitBytes,
    // None, so that raw-body, which does the work, gives the bytes as they came.
    encoding: "",
    json: false,
    urlencoded: false,
    multipart: false,
  });

  async function gather(ctx: Koa.Context): Promise<Buffer> {
    try {
      await gatherBytes(ctx, doNothing);
    } catch (error) {
      throw toReadError(error, limitBytes);
    }
    const body = ctx.request.body as unknown as Buffer;
    // Guests' data; it would stay as long as the request.
    ctx.request.body = null;
    return body;
  }

  /** @throws Refusal that says why it is not read, ClientGone */
  return async function readBody(ctx) {
    const { req, res } = ctx;
    if (!hasBody(req)) return noBody;
    const bodyType = bodyTypeOf(req.headers["content-type"]);
    const refusal = findRefusal(req, bodyType, limitBytes);
    if (refusal !== undefined) {
      if (await isEmptyAfterAll(req)) return noBody;
      throw refusal;
    }
    if (expectsContinue(req)) res.writeContinue();
    // koa-body reads these two headers again, and more narrowly: it must come to the same conclusion.
    req.headers["content-type"] = gatheredType;
    delete req.headers["content-encoding"];
    const bytes = await gather(ctx);
    // The rest of a body may still come in after its sender got 408; the event must not be accepted then.
    if (res.headersSent) throw new ClientGone();
    const decodeText = bodyType === "json" ? decodeJson : decodeForm;
    return { bytes: bytes.length, decode: () => decodeBytes(bytes, decodeText) };
  };
}

function decodeBytes(bytes: Buffer, decodeText: (text: string) => BodyObject): BodyObject {
  const text = decodeUtf8(bytes);
  // It may have been a byte order mark, which is no body either.
  return text === "" ? {} : decodeText(text);
}

/** What the headers alone say against reading the body: its size, its type, its encoding, in this order. */
function findRefusal(req: IncomingMessage, bodyType: string | undefined, limitBytes: number): Refusal | undefined {
  const { "content-encoding": encoding, "transfer-encoding": framing, "content-length": length } = req.headers;
  if (Number(length ?? 0) > limitBytes) return new Refusal(bodyTooLarge(limitBytes));
  // Proxies and libraries disagree on which of two counts.
  if (new Set(headerValues(req, "content-type")).size > 1) return new Refusal(twoContentTypes);
  if (bodyType === undefined) return new Refusal(unsupportedType);
  // Inflating would need limits of its own; an aborted gzip upload never settles in koa-body, and a corrupt one is a 500.
  const isPlain = isOnly("identity", encoding) && isOnly("chunked", framing);
  return isPlain ? undefined : new Refusal(unsupportedEncoding);
}

function isOnly(coding: string, header: string | undefined): boolean {
  return header === undefined || header.toLowerCase() === coding;
}

/** A chunked body tells only at its first byte, or its end, whether there is one; an empty one needs no type. */
async function isEmptyAfterAll(req: IncomingMessage): Promise<boolean> {
  if (req.headers["transfer-encoding"] === undefined || expectsContinue(req)) return false;
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  req.once("readable", () => resolve(req.read() === null));
  // When all has arrived already, there is nothing more to be readable.
  req.once("end", () => resolve(true));
  req.once("close", () => reject(new ClientGone()));
  return promise;
}

/** Such a client waits for us to ask for its body, and we ask only once we know that we want it. */
function expectsContinue(req: IncomingMessage): boolean {
  return req.httpVersion === "1.1" && /\b100-continue\b/i.test(req.headers.expect ?? "");
}

function toReadError(error: unknown, limitBytes: number): unknown {
  switch ((error as { type?: unknown }).type) {
    case "entity.too.large":
      return new Refusal(bodyTooLarge(limitBytes));
    case "request.aborted":
      return new ClientGone();
    default:
      return error;
  }
}

async function doNothing(): Promise<void> {}
