import type { Trial } from "./check.ts";
import type { Expectation } from "./expectations.ts";
import type { Request } from "./request.ts";

export const formType = "application/x-www-form-urlencoded";
export const byteOrderMark = "\ufeff";

/** Both references, because receivers of the specification alone know only the consumer's. */
export function bookingFor(reference: string, more: Record<string, unknown> = {}): Record<string, unknown> {
  return { consumerTripPartnerExternalReference: reference, consumerPartnerExternalReference: reference, ...more };
}

export function bookingJson(reference: string, more?: Record<string, unknown>): string {
  return JSON.stringify(bookingFor(reference, more));
}

export function bookingForm(reference: string, more: Record<string, string> = {}): string {
  return new URLSearchParams({ ...(bookingFor(reference) as Record<string, string>), ...more }).toString();
}

/** A booking with further members, which are written as given. */
export function rawJson(reference: string, members: string): string {
  return `{"consumerTripPartnerExternalReference":"${reference}",${members}}`;
}

/** An ordinary create, apart from what is given. */
export function create(more: Request = {}): Trial["request"] {
  return (reference) => ({ body: bookingJson(reference), ...more });
}

/** A create whose body depends on its reference. */
export function createWith(body: (reference: string) => string | Buffer, more: Request = {}): Trial["request"] {
  return (reference) => ({ body: body(reference), ...more });
}

/** One trial for each value, which labels it. */
export function forEach<Value>(
  values: readonly Value[],
  request: (value: Value) => Trial["request"],
  expect: Expectation,
): Trial[] {
  return values.map((value) => ({ label: JSON.stringify(value), request: request(value), expect }));
}
