import { type Check, check } from "../check.ts";
import { accepted, type Expectation, invalid, refused } from "../expectations.ts";
import { bookingFor, bookingForm, byteOrderMark, create, createWith, forEach, formType } from "../payloads.ts";

const sentAsForm = { type: formType };
const isJson = refused(400, "json-sent-as-form", { says: /application\/json/ });

export const formChecks: readonly Check[] = [
  fields("duplicate-fields", "A form field twice gets 400.", ["&a=1&a=1", "&a=1&%61=2"], "repeated-form-field"),
  fields("brackets", "A form field with brackets gets 400.", ["&a[b]=1", "&a[]=1", "&a%5B0%5D=1"], "nested-form-field"),
  fields("malformed", "Invalid percent-encoding gets 400.", ["&a=%", "&a=%zz", "&a=%E0%A4%A"], "malformed-form"),
  check(
    "forms/utf-8",
    "A form that is not UTF-8 gets 400, before it is decoded or after.",
    { label: "decoded", request: withFields("&a=%FF"), expect: refused(400, "malformed-form") },
    {
      label: "as sent",
      request: createWith(
        (it) => Buffer.concat([Buffer.from(`${bookingForm(it)}&a=`), Buffer.from([0xff])]),
        sentAsForm,
      ),
      expect: refused(400, "invalid-utf8"),
    },
  ),
  check(
    "forms/json",
    "JSON sent as a form gets 400, and the message says which Content-Type to set.",
    { label: "object", request: create(sentAsForm), expect: isJson },
    { label: "array", request: create({ ...sentAsForm, body: "[]" }), expect: isJson },
  ),
  check(
    "forms/byte-order-mark",
    "One byte order mark at the start is ignored; a second one is malformed.",
    { label: "one", request: createWith((it) => byteOrderMark + bookingForm(it), sentAsForm), expect: accepted },
    {
      label: "two",
      request: createWith((it) => byteOrderMark.repeat(2) + bookingForm(it), sentAsForm),
      expect: refused(400, "repeated-byte-order-mark"),
    },
    {
      label: "alone",
      request: create({ ...sentAsForm, body: byteOrderMark }),
      expect: invalid(["consumerTripPartnerExternalReference"]),
    },
  ),
  check(
    "forms/values",
    "A form counts as one value and one more for each field; 2,000 are accepted, 2,001 get 422.",
    { label: "2,000", request: createWith((it) => formOf(1_999, it), sentAsForm), expect: accepted },
    { label: "2,001", request: createWith((it) => formOf(2_000, it), sentAsForm), expect: invalid([]) },
  ),
  check("forms/empty-value", "An empty value of a listed form field is accepted.", {
    request: createWith((it) => bookingForm(it, { consumerGivenName: "" }), sentAsForm),
    expect: accepted,
  }),
];

/** Of a booking with each of these fields. */
function fields(name: string, demand: string, each: readonly string[], code: string): Check {
  const expect: Expectation = refused(400, code);
  return check(`forms/${name}`, demand, ...forEach(each, withFields, expect));
}

function withFields(more: string) {
  return createWith((reference) => `${bookingForm(reference)}${more}`, sentAsForm);
}

function formOf(fieldCount: number, reference: string): string {
  const { length: listed } = Object.keys(bookingFor(reference));
  const others = Array.from({ length: fieldCount - listed }, (_, index) => `&f${index}=1`);
  return `${bookingForm(reference)}${others.join("")}`;
}
