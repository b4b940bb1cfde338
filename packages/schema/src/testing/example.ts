import type { EventKind } from "../payload/event-kind.ts";
import type { Violation } from "../payload/violation.ts";
import type { Warning } from "../warnings/warning.ts";

/** A sample payload, and what the service says about it. */
export interface Example {
  /** The name of its file in `examples/`, without `.json`. */
  name: string;
  description: string;
  kind: EventKind;
  payload: Readonly<Record<string, unknown>>;
  /** The body of the request and its type, if it is not the payload as JSON. */
  body?: string;
  contentType?: "application/json" | "application/x-www-form-urlencoded";
  /** True if JSON Schema cannot express the rule that is violated. */
  beyondJsonSchema?: true;
  expect: { valid: true; warnings?: readonly Warning[] } | { violationList: readonly Violation[] };
}
