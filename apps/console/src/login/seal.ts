import { createHmac, timingSafeEqual } from "node:crypto";

/**
 * Signs what a browser keeps for us, so that nobody else can have written it. It can be read by whoever has it.
 *
 * @param purpose what is signed for one purpose is of no use for another
 */
export function seal(key: Buffer, purpose: string, value: unknown): string {
  const text = Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${text}.${sign(key, purpose, text)}`;
}

/** @returns undefined if we have not sealed it for this purpose */
export function open(key: Buffer, purpose: string, sealed: string): unknown {
  const [text = "", signature = "", ...others] = sealed.split(".");
  // As text: what Buffer reads as these bytes may be written in many ways.
  const [given, wanted] = [Buffer.from(signature), Buffer.from(sign(key, purpose, text))];
  if (others.length > 0 || given.length !== wanted.length || !timingSafeEqual(given, wanted)) return undefined;
  return JSON.parse(Buffer.from(text, "base64url").toString());
}

function sign(key: Buffer, purpose: string, text: string): string {
  return createHmac("sha256", key).update(`${purpose}:${text}`).digest("base64url");
}
