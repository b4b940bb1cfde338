import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { gzipSync } from "node:zlib";
import { type ObserveRequest, type PageAnswer, Refusal } from "@booking-events/http";
import { Counter, type Registry } from "@booking-events/runtime";
import { answers } from "@booking-events/schema";

/** A static file that anyone may read, by its path. */
export type Pages = ReadonlyMap<string, Page>;

interface Page {
  plain: PageAnswer;
  gzipped: PageAnswer;
}

export const pageCode = "page";

const files = [
  { path: "/openapi.json", file: "@booking-events/schema/openapi.json", type: "application/json" },
  { path: "/docs", file: "../../reference-page/index.html", type: "text/html" },
  { path: "/docs/style.css", file: "../../reference-page/style.css", type: "text/css" },
  { path: "/docs/try-out.js", file: "../../reference-page/try-out.js", type: "text/javascript" },
  { path: "/docs/icon.svg", file: "../../reference-page/icon.svg", type: "image/svg+xml" },
];

/** What partners copy into their programs. The image has it as far from this file as the repository. */
const clients = new URL("../../../../docs/clients/", import.meta.url);

export function loadPages(): Pages {
  const pages = files.map(({ path, file, type }) => ({ path, url: new URL(import.meta.resolve(file)), type }));
  const downloads = readdirSync(clients, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => ({ path: `/docs/clients/${name}`, url: new URL(name, clients), type: "text/plain" }));
  return new Map([...pages, ...downloads].map(({ path, url, type }) => [path, toPage(readFileSync(url), type)]));
}

function toPage(bytes: Buffer, type: string): Page {
  const digest = createHash("sha256").update(bytes).digest("base64url");
  const headers = { ...headersOfEveryPage, "Content-Type": `${type}; charset=utf-8` };
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

const headersOfEveryPage = {
  // Browsers keep a copy and ask whether it is current, so pages and their style never come from different releases.
  "Cache-Control": "no-cache",
  Vary: "Accept-Encoding",
  // Nothing but our own files, and no way to send what was typed anywhere else.
  "Content-Security-Policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
};

/** @throws Refusal unless the method is GET or HEAD */
export function answerWithPage({ plain, gzipped }: Page, { method, headers }: IncomingMessage): PageAnswer {
  if (method !== "GET" && method !== "HEAD") throw new Refusal(answers.wrongMethod("GET", "HEAD"));
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

/**
 * Counts the answers with a page, and passes on all others. Anyone may read pages as often as they like. That must not
 * fill the log, look like accepted events, or start workers for them.
 */
export function countPageReads(observe: ObserveRequest, metrics: Registry): ObserveRequest {
  const pageReads = new Counter({
    name: "ingest_page_reads_total",
    help: "Answers with a static page, by status. 304 means that the reader has it.",
    labelNames: ["status"],
    registers: [metrics],
  });
  return (request) => {
    if (request.outcome === pageCode) pageReads.inc({ status: String(request.status ?? "none") });
    else observe(request);
  };
}
