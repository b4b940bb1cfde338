import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { gzipSync } from "node:zlib";
import { answers } from "@booking-events/schema";
import { Refusal } from "../answers/refusal.ts";
import type { PageAnswer } from "../answers/send-answer.ts";

/** Static files that anyone may read, by their paths. */
export type Pages = ReadonlyMap<string, Page>;

export interface Page {
  plain: PageAnswer;
  gzipped: PageAnswer;
}

export const pageCode = "page";

/** @param connectTo another origin to which the page may send requests, besides its own */
export function toPage(bytes: Buffer, type: string, connectTo?: string): Page {
  const digest = createHash("sha256").update(bytes).digest("base64url");
  const headers = { ...headersOfEveryPage(connectTo), "Content-Type": `${type}; charset=utf-8` };
  return {
    plain: { status: 200, code: pageCode, body: bytes, headers: { ...headers, ETag: `"${digest}"` } },
    gzipped: {
      status: 200,
      code: pageCode,
      body: gzipSync(bytes, { level: 9 }),
      headers: { ...headers, "Content-Encoding": "gzip", ETag: `"${digest}-gzip"` },
    },
  };
}

function headersOfEveryPage(connectTo: string | undefined): Record<string, string> {
  return {
    // Browsers keep a copy and ask whether it is current, so pages and their style never come from different releases.
    "Cache-Control": "no-cache",
    Vary: "Accept-Encoding",
    // Nothing but our own files, and no way to send what was typed anywhere else.
    "Content-Security-Policy":
      `default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'${connectTo ? ` ${connectTo}` : ""}; ` +
      "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
  };
}

/**
 * Returns the page of the path, or leads to it: a slash at the end does not matter, and `/` is where people begin.
 * Returns undefined if there is none.
 *
 * @throws Refusal for a page unless the method is GET or HEAD
 */
export function answerWithPage(
  pages: Pages,
  path: string,
  { method, headers }: IncomingMessage,
): PageAnswer | undefined {
  const page = pages.get(path);
  const isRead = method === "GET" || method === "HEAD";
  if (page !== undefined && isRead) return choose(page, headers);
  if (page !== undefined) throw new Refusal(answers.wrongMethod("GET", "HEAD"));
  const elsewhere = isRead ? findElsewhere(pages, path) : undefined;
  if (elsewhere === undefined) return undefined;
  return { status: 302, code: pageCode, body: Buffer.of(), headers: { Location: elsewhere } };
}

/** Relative, since a proxy may have put something before our paths. */
function findElsewhere(pages: Pages, path: string): string | undefined {
  if (path === "/") return pages.has("/docs") ? "docs" : undefined;
  const withoutSlash = path.slice(0, -1);
  const isThere = path.endsWith("/") && pages.has(withoutSlash);
  return isThere ? `../${withoutSlash.slice(withoutSlash.lastIndexOf("/") + 1)}` : undefined;
}

function choose({ plain, gzipped }: Page, headers: IncomingMessage["headers"]): PageAnswer {
  const page = acceptsGzip(headers["accept-encoding"]) ? gzipped : plain;
  const isCurrent = hasTag(headers["if-none-match"], page.headers?.["ETag"]);
  // Node sends no body with 304 or to HEAD. Content-Length is then that of the page (RFC 9110, section 8.6).
  return isCurrent ? { ...page, status: 304 } : page;
}

function acceptsGzip(header: string | string[] | undefined = ""): boolean {
  const [, quality = "1"] = /\bgzip\b(?:\s*;\s*q=([\d.]+))?/i.exec(header.toString()) ?? [undefined, "0"];
  return Number(quality) > 0;
}

function hasTag(header = "", tag: string | undefined): boolean {
  return header.split(",").some((each) => each.trim().replace(/^W\//, "") === tag);
}
