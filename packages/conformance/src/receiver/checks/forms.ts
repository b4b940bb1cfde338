import { type Check, check } from "../check.ts";
import { accepted, type Expectation, invalid, refused } from "../expectations.ts";
import { bookingFor, bookingForm, byteOrderMark, create, createWith, forEach, formType } from "../payloads.ts";

const sentAsForm = { type: formType };
export const formChecks: readonly Check[] = [
  fields(
    "duplicate-fields",
    "A listed form field twice gets 400.",
    ["&consumerPhone=1&consumerPhone=1", "&consumerPhone=1&%63onsumerPhone=2"],
    refused(400, "repeated-form-field"),
  ),
  fields("unlisted-fields", "An unlisted form field twice is accepted.", ["&a=1&a=1", "&a=1&%61=2"], accepted),
  fields("brackets", "Brackets in names are accepted.", ["&a[b]=1", "&a[]=1&a[]=2", "&a%5B0%5D=1"], accepted),
  fields("percent", "A percent sign that begins no escape stands for itself.", ["&a=%", "&a=%zz", "&%=5%"], accepted),
  fields("line-break", "Line breaks after the last value are ignored.", ["\r\n", "\n\n"], accepted),
  check(
    "forms/utf-8",
    "A form that is not UTF-8 gets 400, before it is decoded or after.",
    { label: "decoded", request: withFields("&a=%FF"), expect: refused(400, "invalid-utf8") },
    {
      label: "as sent",
      request: createWith(
        (it) => Buffer.concat([Buffer.from(`${bookingForm(it)}&a=`), Buffer.from([0xff])]),
        sentAsForm,
      ),
      expect: refused(400, "invalid-utf8"),
    },
  ),
  check("forms/escaped-charset", "A form's escapes are of its declared charset.", {
    request: createWith((it) => `${bookingForm(it)}&a=%E9`, { type: `${formType}; charset=iso-8859-1` }),
    expect: accepted,
  }),
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
function fields(name: string, demand: string, each: readonly string[], expect: Expectation): Check {
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
