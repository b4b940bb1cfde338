import type { IncomingMessage } from "node:http";
import { ClientGone, expectsContinue, hasBody, headerValues, Refusal } from "@booking-events/http";
import { answers } from "@booking-events/schema";
import type Koa from "koa";
import type { ArrivingBytes } from "./arriving-bytes.ts";
import { type ContentType, readContentType } from "./content-type.ts";
import { type DecodedBody, decodeBody } from "./decode-body.ts";
import { createByteGatherer } from "./gather-bytes.ts";

export type ReadBody = (ctx: Koa.Context, partner: string) => Promise<Body>;

/** A body that has been received but not decoded. */
export interface Body {
  bytes: number;
  /**
   * Returns an empty object for an absent or empty body.
   *
   * @throws Refusal if the body cannot be decoded as one object
   */
  decode: () => DecodedBody;
}

const noBody: Body = { bytes: 0, decode: () => ({ object: {}, warnings: [] }) };

/** @param arriving counts what all readers have begun to read */
export function createBodyReader(limitBytes: number, arriving: ArrivingBytes): ReadBody {
  const gatherBytes = createByteGatherer(limitBytes);

  async function gather(ctx: Koa.Context, partner: string): Promise<Buffer> {
    const { promise: exceeded, reject } = Promise.withResolvers<never>();
    const arrival = arriving.begin(partner, () => reject(new Refusal(answers.tooMuchToRead)));
    // Not before it is read elsewhere: a listener for data lets it flow, and the first part would be lost.
    ctx.req.once("resume", () => ctx.req.on("data", ({ length }: Buffer) => arrival.add(length)));
    try {
      return await Promise.race([gatherBytes(ctx), exceeded]);
    } catch (error) {
      throw toReadError(error, limitBytes);
    } finally {
      arrival.end();
    }
  }

  /** @throws Refusal if the body is not read, ClientGone */
  return async function readBody(ctx, partner) {
    const { req, res } = ctx;
    if (!hasBody(req)) return noBody;
    const contentType = readContentType(req.headers["content-type"]);
    const refusal = findRefusal(req, contentType, limitBytes);
    if (refusal !== undefined || contentType === undefined) {
      if (await isBodyEmpty(req)) return noBody;
      throw refusal ?? new Refusal(answers.unsupportedType);
    }
    if (expectsContinue(req)) res.writeContinue();
    const bytes = await (takeArrivedBody(req) ?? gather(ctx, partner));
    // The rest of the body may still arrive after the client was answered with 408. The event must not be accepted
    // then.
    if (res.headersSent) throw new ClientGone();
    return { bytes: bytes.length, decode: () => decodeBody(bytes, contentType) };
  };
}

/**
 * Takes a body that Node has already received. Most bodies arrive together with their headers, and reading them as a
 * stream takes several times as long. Returns undefined if a part is missing, or if the body is chunked.
 */
function takeArrivedBody(req: IncomingMessage): Promise<Buffer> | undefined {
  if (req.readableLength !== Number(req.headers["content-length"])) return undefined;
  const bytes: Buffer = req.read();
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  // Emitted once the request is complete. An answer sent before would close the connection.
  req.once("close", () => (req.complete ? resolve(bytes) : reject(new ClientGone())));
  req.resume();
  return promise;
}

/** Checks the headers for reasons not to read the body, in this order: size, type, encoding. */
function findRefusal(
  req: IncomingMessage,
  contentType: ContentType | undefined,
  limitBytes: number,
): Refusal | undefined {
  const { "content-encoding": encoding, "transfer-encoding": framing, "content-length": length } = req.headers;
  if (Number(length ?? 0) > limitBytes) return new Refusal(answers.bodyTooLarge(limitBytes));
  // Proxies and libraries disagree about which of two headers counts.
  const types = headerValues(req, "content-type");
  if (types.some((type) => type !== types[0])) return new Refusal(answers.twoContentTypes);
  if (contentType === undefined) return new Refusal(answers.unsupportedType);
  // Decompression would need its own limits. In koa-body, an aborted gzip upload never settles and a corrupt one causes
  // a 500.
  const isPlain = isUncompressed(encoding) && (framing === undefined || framing.toLowerCase() === "chunked");
  return isPlain ? undefined : new Refusal(answers.unsupportedEncoding);
}

/** Some senders take the header for the place to say `utf-8`. */
function isUncompressed(encoding: string | undefined): boolean {
  return (
    encoding === undefined || encoding.split(",").every((coding) => /^[ \t]*(?:identity|utf-?8)?[ \t]*$/i.test(coding))
  );
}

/**
 * Whether a chunked body is empty is known only when its first byte or its end arrives. An empty body needs no type.
 */
async function isBodyEmpty(req: IncomingMessage): Promise<boolean> {
  if (req.headers["transfer-encoding"] === undefined || expectsContinue(req)) return false;
  const { promise, resolve, reject } = Promise.withResolvers<boolean>();
  req.once("readable", () => resolve(req.read() === null));
  // If everything has already arrived, "readable" is not emitted.
  req.once("end", () => resolve(true));
  req.once("close", () => reject(new ClientGone()));
  return promise;
}

function toReadError(error: unknown, limitBytes: number): unknown {
  switch ((error as { type?: unknown }).type) {
    case "entity.too.large":
      return new Refusal(answers.bodyTooLarge(limitBytes));
    case "request.aborted":
      return new ClientGone();
    default:
      return error;
  }
}
