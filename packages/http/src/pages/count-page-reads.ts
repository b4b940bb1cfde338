import { Counter, type Registry } from "@booking-events/runtime";
import type { ObserveRequest } from "../log/observed-request.ts";
import { pageCode } from "./static-pages.ts";

/**
 * Counts the answers with a page, and passes on all others. Anyone may read pages as often as they like. That must not
 * fill the log, look like accepted events, or start workers for them.
 */
export function countPageReads(app: string, observe: ObserveRequest, metrics: Registry): ObserveRequest {
  const pageReads = new Counter({
    name: `${app}_page_reads_total`,
    help: "Answers with a static page, by status. 304 means that the reader has it.",
    labelNames: ["status"],
    registers: [metrics],
  });
  return (request) => {
    if (request.outcome === pageCode) pageReads.inc({ status: String(request.status ?? "none") });
    else observe(request);
  };
}
