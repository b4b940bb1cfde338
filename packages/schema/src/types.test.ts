import { describe, expectTypeOf, test } from "vitest";
import type { BatchAnswer } from "./client/index.ts";
import {
  type BookingField,
  type BookingInput,
  type BookingPayload,
  type BookingReference,
  bookingReferenceOf,
  type EventEnvelope,
  type EventKind,
  type envelopeVersion,
  parseEnvelope,
  type Violation,
  validatePayload,
  type Warning,
} from "./index.ts";

describe("BookingInput", () => {
  test("has a type for each listed field, and every field is optional", () => {
    expectTypeOf<BookingInput["consumerPhone"]>().toEqualTypeOf<string | undefined>();
    expectTypeOf<BookingInput["consumerTripArrivalDate"]>().toEqualTypeOf<string | undefined>();
    expectTypeOf<BookingInput["consumerLanguage"]>().toEqualTypeOf<string | null | undefined>();
    expectTypeOf<BookingInput["consumerEmail"]>().toEqualTypeOf<string | null | undefined>();
    expectTypeOf({}).toExtend<BookingInput>();
  });

  test("accepts unlisted fields with the type unknown", () => {
    expectTypeOf({ consumerPhone: "+15550100123", loyalty: { tier: "gold" } }).toExtend<BookingInput>();
    expectTypeOf<BookingInput["loyalty"]>().toEqualTypeOf<unknown>();
  });

  test("accepts retired names, which are kept", () => {
    expectTypeOf({ consumerTripBookingDate: "2026-06-14" }).toExtend<BookingInput>();
    expectTypeOf<BookingInput["consumerTripDepartureFlightAirline"]>().toEqualTypeOf<unknown>();
  });

  test("accepts undefined, which JSON leaves out", () => {
    expectTypeOf({ consumerPhone: undefined, loyalty: undefined }).toExtend<BookingInput>();
    expectTypeOf({ consumerTripPartnerExternalReference: undefined }).toExtend<BookingReference>();
  });

  test("rejects other types, and null where it is not allowed", () => {
    // @ts-expect-error a number
    const number: BookingInput = { consumerPhone: 15_550_100_123 };
    // @ts-expect-error null
    const nothing: BookingInput = { consumerPhone: null };
    expectTypeOf([number, nothing]).toExtend<BookingInput[]>();
  });
});

test("BookingReference has the two references", () => {
  expectTypeOf<BookingReference["consumerTripPartnerExternalReference"]>().toEqualTypeOf<string | undefined>();
  expectTypeOf<BookingReference["consumerPartnerExternalReference"]>().toEqualTypeOf<string | undefined>();
  expectTypeOf<BookingReference["consumerPhone"]>().toEqualTypeOf<unknown>();
});

test("a result is a payload or a list of violations, and never both", () => {
  const result = validatePayload("create", {});

  if (result.success) expectTypeOf(result).toEqualTypeOf<{ success: true; payload: BookingInput }>();
  else expectTypeOf(result).toEqualTypeOf<{ success: false; violationList: Violation[] }>();
  const deletion = validatePayload("delete", {});
  if (deletion.success) expectTypeOf(deletion.payload).toEqualTypeOf<BookingReference>();
  expectTypeOf(validatePayload).parameter(0).toEqualTypeOf<EventKind>();
  expectTypeOf(validatePayload).parameter(1).toEqualTypeOf<unknown>();
  expectTypeOf(bookingReferenceOf).parameters.toEqualTypeOf<[payload: BookingPayload]>();
});

test("an envelope is one object type, so Omit and spread keep its fields", () => {
  expectTypeOf<EventEnvelope>().toEqualTypeOf<{
    version: 1;
    eventId: string;
    kind: EventKind;
    partner: string;
    sequence: number;
    receivedAt: string;
    idempotencyKey: string | null;
    secretId?: string | null | undefined;
    defaultCountry?: string | null | undefined;
    warnings?: string[] | undefined;
    traceparent?: string | null | undefined;
    test?: true | undefined;
    payload: BookingPayload;
  }>();
  expectTypeOf<typeof envelopeVersion>().toEqualTypeOf<1>();
  const result = parseEnvelope({});
  if (result.success) expectTypeOf(result.envelope).toEqualTypeOf<EventEnvelope>();
  else expectTypeOf(result).toEqualTypeOf<{ success: false; problem: string; isOfLaterVersion: boolean }>();
});

test("a field's description is precise", () => {
  expectTypeOf<BookingField["type"]>().toEqualTypeOf<"text" | "phone" | "flag" | "date" | "email" | "language">();
  expectTypeOf<"consumerPhone">().toExtend<BookingField["name"]>();
  expectTypeOf<"loyalty">().not.toExtend<BookingField["name"]>();
});

test("a warning that is answered names no listed field of its own", () => {
  expectTypeOf<NonNullable<BatchAnswer["warnings"]>[number]>().toEqualTypeOf<Warning>();
});
