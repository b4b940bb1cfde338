import * as fc from "fast-check";
import { ExactNumber } from "../json/exact-number.ts";
import { type BookingField, BookingInput, bookingFields } from "../payload/booking-input.ts";
import type { BookingReference } from "../payload/booking-reference.ts";
import { cleanReference } from "../payload/clean-reference.ts";
import { anyCharacter } from "./any-character.ts";

/** Generates payloads of create and update that the service accepts, with unlisted fields. */
export function bookingInput(): fc.Arbitrary<BookingInput> {
  return fc.tuple(unlistedFields(), references(), listedFields()).map(([unlisted, reference, listed]) => {
    return { ...unlisted, ...listed, ...reference };
  });
}

/** Generates payloads of delete that the service accepts, with unlisted fields. */
export function bookingReference(): fc.Arbitrary<BookingReference> {
  return fc.tuple(unlistedFields(), references()).map(([unlisted, reference]) => ({ ...unlisted, ...reference }));
}

/** Generates payloads of create and update that the service refuses with 422: accepted ones with one fault. */
export function invalidBookingInput(): fc.Arbitrary<Record<string, unknown>> {
  return fc.tuple(bookingInput(), faults()).map(([booking, fault]) => {
    return { ...booking, ...fault };
  });
}

const references = () =>
  fc.oneof(
    fc.record({ consumerTripPartnerExternalReference: referenceOf(255) }),
    fc.record({ consumerPartnerExternalReference: referenceOf(maxLength) }),
    fc.record({
      consumerTripPartnerExternalReference: referenceOf(255),
      consumerPartnerExternalReference: textOf(maxLength),
    }),
    fc.record({
      consumerTripPartnerExternalReference: fc.constantFrom("", " ", "\u200b"),
      consumerPartnerExternalReference: referenceOf(maxLength),
    }),
  );
const maxLength = 8_192;
/** An empty reference counts as missing. */
const referenceOf = (maxLength: number) => textOf(maxLength).filter((text) => cleanReference(text) !== "");

function listedFields(): fc.Arbitrary<Record<string, unknown>> {
  const others = bookingFields.filter(({ name }) => !/^consumer(Trip)?PartnerExternalReference$/.test(name));
  const pairs = others.map((field) => fc.tuple(fc.constant(field.name), fieldValue(field)));
  return fc
    .tuple(fc.tuple(...pairs), fc.subarray(others.map(({ name }) => name)))
    .map(([all, chosen]) => Object.fromEntries(all.filter(([name]) => chosen.includes(name))));
}

function fieldValue({ type, nullable, maxLength, acceptsAnything }: BookingField): fc.Arbitrary<unknown> {
  const value = type === "date" ? dates() : type === "email" ? emails() : textOf(maxLength);
  const text = fc.oneof({ weight: 9, arbitrary: value }, { weight: 1, arbitrary: fc.constantFrom("", " \t") });
  if (acceptsAnything) return fc.oneof({ weight: 9, arbitrary: text }, { weight: 1, arbitrary: anyJson() });
  return nullable ? fc.option(text) : text;
}

/** Mostly short, sometimes of the maximum length. Code points may be two UTF-16 code units. */
function textOf(maxLength: number): fc.Arbitrary<string> {
  const longest = fc.constantFrom("x", "é", "😀").map((character) => character.repeat(maxLength));
  return fc.oneof({ weight: 9, arbitrary: storableText(1, 20) }, { weight: 1, arbitrary: longest });
}

/** Everything except U+0000 and unpaired surrogates, which PostgreSQL cannot store. */
function storableText(minLength: number, maxLength: number): fc.Arbitrary<string> {
  return fc.string({ unit: anyCharacter, minLength, maxLength }).map((text) => text.replaceAll("\0", "0"));
}

function emails(): fc.Arbitrary<string> {
  const forms = fc.constantFrom("ADDRESS", " ADDRESS\n", "Sam <ADDRESS>", '"Example, Sam" <ADDRESS>');
  const written = fc.tuple(fc.emailAddress(), forms).map(([address, form]) => form.replace("ADDRESS", () => address));
  return fc.oneof(
    written,
    fc.emailAddress().map((address) => `mailto:${encodeURI(address)}`),
  );
}

function dates(): fc.Arbitrary<string> {
  const moments = fc.date({
    min: new Date("1900-01-01T00:00:00Z"),
    max: new Date("2999-12-31T23:59:59Z"),
    noInvalidDate: true,
  });
  const zones = fc.constantFrom(undefined, "", "Z", "+02:00", " -0330", "+14", " UTC", "+02:00[Europe/Berlin]");
  const separators = fc.constantFrom("T", "t", " ");
  const written = fc.tuple(moments, zones, separators).map(([moment, zone, separator]) => {
    const text = moment.toISOString();
    return zone === undefined ? text.slice(0, 10) : text.replace("Z", zone).replace("T", separator);
  });
  const basic = moments.map((moment) => moment.toISOString().slice(0, 10).replaceAll("-", ""));
  const none = fc.constantFrom("0001-01-01T00:00:00", "0000-00-00 00:00:00", "9999-12-31");
  return fc.oneof({ weight: 8, arbitrary: written }, basic, none);
}

/** Under any name that has no rule of its own. */
function unlistedFields(): fc.Arbitrary<Record<string, unknown>> {
  const names = storableText(0, 20).filter((name) => !Object.hasOwn(BookingInput.entries, name));
  return fc.dictionary(names, anyJson(), { maxKeys: 3 });
}

/** Any JSON that is not too deep. */
function anyJson(): fc.Arbitrary<unknown> {
  return fc.anything({
    maxDepth: 3,
    maxKeys: 3,
    key: storableText(0, 10),
    values: [storableText(0, 20), fc.boolean(), fc.constant(null), fc.maxSafeInteger(), fractions()],
  });
}

/** With at most ten digits after the point: all numbers of a payload together may not have too many. */
const fractions = () => fc.integer({ min: -1e9, max: 1e9 }).map((value) => value / 1_024);

function faults(): fc.Arbitrary<Record<string, unknown>> {
  const notNullable = bookingFields.filter(({ nullable }) => !nullable);
  const names = fc.constantFrom(...bookingFields.filter((field) => !field.acceptsAnything).map(({ name }) => name));
  const fault = (name: fc.Arbitrary<string>, value: fc.Arbitrary<unknown>) => {
    return fc.tuple(name, value).map(([key, fault]) => ({ [key]: fault }));
  };
  return fc.oneof(
    fault(names, fc.oneof(fc.integer(), fc.boolean(), fc.constantFrom([], {}), fc.constant("x".repeat(8_193)))),
    fault(fc.constantFrom(...notNullable.map(({ name }) => name)), fc.constant(null)),
    fc.constantFrom("\0", "x\ud800").map((text) => ({ consumerTripPartnerExternalReference: text })),
    fault(
      fc.constantFrom("consumerTripArrivalDate", "consumerTripReturnDate"),
      fc.constantFrom("2026-02-31", "1781421600", "14.06.2026", "2026-06-14T24:00Z"),
    ),
    fault(fc.constant("agentEmail"), fc.constantFrom("sam", "sam@", "sam@example..com", "sam@a.com, robin@a.com")),
    fault(
      fc.constant("unlisted"),
      fc.constantFrom(new ExactNumber("1e1000"), { a: [new ExactNumber("1e-1000")] }, Number.NaN),
    ),
    fc.constantFrom("", " \t", "\u200b").map((blank) => ({
      consumerTripPartnerExternalReference: blank,
      consumerPartnerExternalReference: blank,
    })),
  );
}
