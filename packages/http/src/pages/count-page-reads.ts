import { Counter, type Registry } from "@booking-events/runtime";
import { preflightCode } from "../app/allow-origin.ts";
import type { ObserveRequest } from "../log/observed-request.ts";
import { pageCode } from "./static-pages.ts";

const anyonesCodes = new Set([pageCode, preflightCode]);

/**
 * Counts the answers with a page, and those that only tell a browser what a page may send, and passes on all others.
 * Anyone may ask for these as often as they like. That must not fill the log, look like accepted events, or start workers
 * for them.
 */
export function countPageReads(app: string, observe: ObserveRequest, metrics: Registry): ObserveRequest {
  const pageReads = new Counter({
    name: `${app}_page_reads_total`,
    help:
      "Answers with a static page, or to browsers that ask what a page may send, by status. 304 means that the reader has " +
      "the page.",
    labelNames: ["status"],
    registers: [metrics],
  });
  return (request) => {
    if (anyonesCodes.has(request.outcome)) pageReads.inc({ status: String(request.status ?? "none") });
    else observe(request);
  };
}
