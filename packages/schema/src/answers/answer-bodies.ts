import * as v from "valibot";
import { Violation } from "../payload/violation.ts";
import { Warning } from "../warnings/warning.ts";
import { ListViolation } from "./list-violations.ts";

/*
 * The bodies of answers. Each comment is also a description in the OpenAPI document: run `npm run json-schema` after a
 * change. Later releases may add members.
 */

/** The event is stored and will be applied. */
export const AcceptedBody = v.object({
  /** Always true. */
  success: v.literal(true),
  /** The event's id, a UUID of version 7: your receipt. The `X-Request-Id` header repeats it. */
  eventId: v.pipe(v.string(), v.uuid()),
  /** True if you are a test partner: the event is applied to test bookings. Missing otherwise. */
  test: v.exactOptional(v.literal(true)),
  /** Likely mistakes in the payload, up to 20. Missing if there are none. The event counts even so. */
  warnings: v.exactOptional(v.array(Warning)),
});
export type AcceptedBody = v.InferOutput<typeof AcceptedBody>;

/** Nothing is wrong. Nothing was stored. */
export const DryRunBody = v.object({
  /** Always true. */
  success: v.literal(true),
  /** Always true. */
  dryRun: v.literal(true),
  /** Likely mistakes in the payload, up to 20. Missing if there are none. */
  warnings: v.exactOptional(v.array(Warning)),
});
export type DryRunBody = v.InferOutput<typeof DryRunBody>;

/** The request was refused. */
export const RefusalBody = v.object({
  /** What to correct, in sentences. The wording may change. */
  message: v.string(),
  /** Names the reason, and never changes its meaning. Treat an unknown code by the status alone. */
  code: v.string(),
});
export type RefusalBody = v.InferOutput<typeof RefusalBody>;

/** The payload violates rules. */
export const InvalidDataBody = v.object({
  /** What to correct, in sentences. The wording may change. */
  message: v.string(),
  /** Names the reason, and never changes its meaning. */
  code: v.literal("invalid-data"),
  /** Every violated rule, up to 50: listed fields first, in the contract's order. */
  violationList: v.array(Violation),
});
export type InvalidDataBody = v.InferOutput<typeof InvalidDataBody>;

/** Lines of the list are wrong. */
export const InvalidListBody = v.object({
  message: v.string(),
  code: v.literal("invalid-list-line"),
  /** The first wrong lines, up to 50. */
  violationList: v.array(ListViolation),
});
export type InvalidListBody = v.InferOutput<typeof InvalidListBody>;
