import * as fc from "fast-check";

/** In each body, key and header that is sent. None of it may appear in the service's log. */
export const canary = "canary-7d20b4";

/** Ingest refuses all but the first, each for another reason. */
export const secrets = ["fuzz-valid-secret", "fuzz-expired-secret", "fuzz-nobody", ""] as const;
const [validSecret, expiredSecret] = secrets;

const paths = [
  ...["/booking-event/create/", "/booking-event/update/", "/booking-event/delete/"],
  ...["/booking-event/CREATE/", "/booking-event//", "//booking-event/create/", "/booking-event/create/../update/", "/"],
];
const pathEnds = ["", "/", "//", "?", `?x=${canary}`, "#", "%2F", "%00", "%E0%A4%A", "/..", ";x", "%"];
const types = [
  ...["application/json", "application/x-www-form-urlencoded", "APPLICATION/JSON; charset=UTF-8"],
  ...['application/json; charset="utf-8"', "application/json; charset=utf-16", "application/problem+json"],
  ...["application/json, text/plain", "multipart/form-data; boundary=x", "text/plain", "text/json", "", ";"],
  ...["application/json; charset=windows-1252", "application/x-www-form-urlencoded; charset=iso-8859-1"],
];
const oddHeaders = [
  ...["Content-Encoding: gzip", "Content-Encoding: identity"],
  ...["Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked", "Trailer: x"],
  ...["Content-Length: 0", "Content-Length: 7", "Content-Length: 99999999", "Content-Length: -1"],
  ...["Expect: 100-continue", "Expect: anything", "Connection: close", "Connection: upgrade", "Upgrade: websocket"],
  "Connection: upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
  ...["X-Dry-Run: true", "X-Dry-Run: no", `X-Dry-Run: ${canary}`, "Content-Encoding: utf-8"],
  ...[
    `Idempotency-Key: ${canary}`,
    `Idempotency-Key: "${canary} 2"`,
    "Idempotency-Key:",
    "webhook-id: a, b",
    "webhook-id: another",
  ],
  ...["Content-Type: application/json", "Content-Type: text/plain"],
  ...[`X-Forwarded-For: ${canary}, 192.0.2.1`, "Host: another", `X-Long: ${"x".repeat(9_000)}`],
];
const methods = ["GET", "HEAD", "PUT", "OPTIONS", "TRACE", "DELETE", "BREW", "post", "CONNECT"];
/** Texts that parsers are known to fail on. */
const oddTexts = [
  ...["\0", "\ud800", "\udc00x", "\u2028", "\ufeff", "__proto__", "constructor", "toString", "hasOwnProperty"],
  ...["%00", "%", "a[b]", "a.b", "[]", "null", "1e999", "-0", "2026-02-31", "9".repeat(400), "x".repeat(2_000)],
];
const oddBodies = [
  ...["", "{", "[]", " ", "\ufeff", "\ufeff\ufeff", '{"a":1,"a":2}', "a=1&a=2", "a[b]=%&amp;c=%00\r\n"],
  ...["[".repeat(65_536), "x".repeat(70_000)],
];
const listedFields = [
  ...["consumerTripPartnerExternalReference", "consumerPartnerExternalReference", "consumerGivenName"],
  ...["consumerPhone", "consumerEmail", "agentEmail", "consumerTripArrivalDate", "consumerTripBookingDate"],
  "consumerLanguage",
];

/** To list all characters, as fast-check's own unit of them does, takes seconds. */
const character = fc
  .nat({ max: 0x10_ffff })
  .map((code) => String.fromCodePoint(code))
  .filter((text) => text.isWellFormed());

const text = weighted<string>(
  [1, fc.string({ unit: character, maxLength: 30 })],
  [1, fc.constantFrom(...oddTexts)],
  [4, fc.constantFrom("Ada", "Zoë", "+442071838750", "2027-06-14", "a@example.org")],
  [4, fc.string({ maxLength: 10 }).map((tail) => canary + tail)],
);
const name = weighted<string>([2, fc.constantFrom(...listedFields)], [1, text]);
const reference = { consumerTripPartnerExternalReference: "TRIP-1" };

/** Valid and invalid payloads, most of them objects. */
export const payload = weighted<unknown>(
  [4, fc.dictionary(name, text, { maxKeys: 4 }).map((fields) => ({ ...fields, ...reference }))],
  [4, fc.dictionary(name, fc.oneof(text, fc.jsonValue({ maxDepth: 3 })), { maxKeys: 8 })],
  [1, fc.jsonValue({ maxDepth: 20, depthSize: "large" })],
);
/** Some separators are wrong, and some names appear twice. */
const form = fc
  .array(fc.tuple(name, text), { maxLength: 8 })
  .map((fields) =>
    new URLSearchParams(
      fields.map(([key, value]) => [key, value.toWellFormed()] satisfies [string, string]),
    ).toString(),
  )
  .chain((fields) => fc.constantFrom(fields, `${fields}&${fields}`, fields.replaceAll("&", "&amp;"), `${fields}%\n`));
const body = weighted<Uint8Array>(
  [4, payload.map((value) => Buffer.from(JSON.stringify(value) ?? ""))],
  [2, form.map((fields) => Buffer.from(fields))],
  [1, fc.uint8Array({ maxLength: 200 })],
  [2, fc.constantFrom(...oddBodies).map((odd) => Buffer.from(odd))],
);

/** What is sent over one connection. */
export interface Sent {
  bytes: Buffer;
  /**
   * How many requests any HTTP server must see in the bytes: the client waits for as many answers. If it is undefined,
   * nobody knows, and the client closes its side after the last byte.
   */
  requests: number | undefined;
  /** When the client resets the connection: as soon as it has sent everything, or at the first byte of an answer. */
  reset?: "at once" | "at the answer";
  /** No other status is correct, apart from 503. */
  statuses?: readonly string[];
}

/** A correct, odd or wrong request. */
const request = fc
  .record({
    method: mostly("POST", methods),
    path: weighted<string>([4, fc.constantFrom(...paths.slice(0, 3))], [1, fc.constantFrom(...paths)]),
    secret: mostly(validSecret, secrets),
    end: mostly("", pathEnds),
    type: weighted<string>([4, fc.constantFrom(...types.slice(0, 2))], [1, fc.constantFrom(...types)]),
    odd: weighted<string[]>([4, fc.constant([])], [1, fc.subarray(oddHeaders, { maxLength: 3 })]),
    framing: fc.constantFrom("length", "length", "length", "length", "chunked", "none"),
    version: mostly("1.1", ["1.0", "2.0"]),
    body,
  })
  .map(({ method, path, secret, end, type, odd, framing, version, body: content }) => {
    const headers = ["Host: localhost", `Content-Type: ${type}`];
    if (framing === "length") headers.push(`Content-Length: ${content.length}`);
    if (framing === "chunked") headers.push("Transfer-Encoding: chunked");
    headers.push(...odd);
    const head = `${method} ${path}${secret}${end} HTTP/${version}\r\n${headers.join("\r\n")}\r\n\r\n`;
    const framed = framing === "chunked" ? toChunks(content) : content;
    const isClear = odd.length === 0 && framing !== "none" && version === "1.1";
    return { bytes: Buffer.concat([Buffer.from(head, "latin1"), framed]), isClear };
  });

/** A change of the bytes: some of them are removed or repeated, behind others that are inserted. */
const edit = fc
  .record({
    at: fc.nat(),
    length: weighted([2, fc.constant(1)], [4, fc.nat(40)], [1, fc.constant(Number.POSITIVE_INFINITY)]),
    copies: fc.nat(2),
    inserted: fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 1 }),
      fc.uint8Array({ maxLength: 8 }),
      fc
        .constantFrom("", "", "\r\n", "\r\n\r\n", "\n", "0\r\n\r\n", "\0", "ffffffffffffffff\r\n")
        .map((inserted) => Buffer.from(inserted)),
    ),
  })
  .map(({ at, length, copies, inserted }) => (bytes: Buffer) => {
    const start = bytes.length === 0 ? 0 : at % bytes.length;
    const copied: Buffer[] = Array(copies).fill(bytes.subarray(start, start + length));
    return Buffer.concat([bytes.subarray(0, start), inserted, ...copied, bytes.subarray(start + length)]);
  });
const edits = weighted<((bytes: Buffer) => Buffer)[]>([2, fc.constant([])], [1, fc.array(edit, { maxLength: 6 })]);

const ordinary = fc.tuple(fc.array(request, { minLength: 1, maxLength: 3 }), edits).map(
  ([requests, changes]): Sent => ({
    bytes: changes.reduce<Buffer>((bytes, change) => change(bytes), Buffer.concat(requests.map(({ bytes }) => bytes))),
    requests: changes.length === 0 && requests.every(({ isClear }) => isClear) ? requests.length : undefined,
  }),
);

const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;
const listOf = (count: number, value: string) => `[${Array(count).fill(value).join()}]`;
/** Fields of an object with a reference, at a limit of what a payload may be or somewhat beyond it: 200 or 422. */
const hostileFields = [
  // With the object itself, its reference and the list, 2,000 and 2,001 JSON values.
  ...[`"x":${listOf(1_997, "0")}`, `"x":${listOf(1_998, "0")}`],
  // Nearly 64 KiB.
  ...[`"x":${listOf(21_700, "{}")}`, `"x":${listOf(21_700, "[]")}`, `"x":${listOf(32_000, "1")}`],
  ...[15, 16, 17, 1_000, 10_000].map((levels) => `"x":${nested(levels)}`),
  Array.from({ length: 5_000 }, (_, index) => `"k${index}":0`).join(),
  ...[`"${"n".repeat(65_000)}":0`, `"x":"${"v".repeat(65_000)}"`, `"x":"${"\\u0000".repeat(10_000)}"`],
  `"x":${listOf(7_000, '"\\ud800"')}`,
];
const hostile = fc.constantFrom(...hostileFields).map(
  (fields): Sent => ({
    bytes: postOf(`{"consumerTripPartnerExternalReference":"${canary}",${fields}}`),
    requests: 1,
    statuses: ["200", "422"],
  }),
);

/** At most 12 significant digits, which a double holds. */
const ordinaryNumber = fc
  .record({
    sign: fc.constantFrom("", "-"),
    digits: fc.nat(10 ** 9).map(String),
    fraction: fc.constantFrom("", ".0", ".50", `.25${"0".repeat(40)}`),
    exponent: fc.constantFrom("", "", "e0", "E+2", "e-3", "e-05", "e-20"),
  })
  .map(({ sign, digits, fraction, exponent }) => sign + digits + fraction + exponent);
/** At least 18 significant digits, which no double holds. */
const exactNumber = fc
  .record({
    digits: fc.stringMatching(/^[1-9][0-9]{16,40}[1-9]$/),
    at: fc.nat(),
    exponent: fc.constantFrom("", "e5", "E-9"),
  })
  .map(({ digits, at, exponent }) => {
    const point = 1 + (at % (digits.length - 1));
    return `${digits.slice(0, point)}.${digits.slice(point)}${exponent}`;
  });
const extreme = fc.constantFrom("1e-400", "-1e-400", "1e400", "1e21", "9007199254740993", "1e999", "-1e-999");
const tooLong = fc.constantFrom(
  "1e1000",
  "-1E-1000",
  "9".repeat(1_001),
  `0.${"0".repeat(999)}1`,
  "1e99999999999999999999",
);
const jsonString = fc.string().map((value) => JSON.stringify(value.replaceAll("\0", "")));

/** Keys that the object has already. */
const repeatedKeys = ['"a"', '"\\u0061"', '"__proto__"', '"\\u005f_proto__"'];
/** The correct status follows from how the body is built. */
const judged = fc
  .record({
    value: weighted<{ json: string; isAllowed: boolean }>(
      [
        6,
        fc.record({ json: fc.oneof(ordinaryNumber, exactNumber, extreme, jsonString), isAllowed: fc.constant(true) }),
      ],
      [2, fc.record({ json: tooLong, isAllowed: fc.constant(false) })],
    ),
    lastKey: fc.constantFrom(...repeatedKeys, '"b"', '""', '"0"'),
    levels: fc.constantFrom(0, 0, 1, 12, 10_000),
    marks: fc.constantFrom(0, 0, 0, 1, 2),
    space: fc.constantFrom("", "", " ", "\r\n\t"),
    end: fc.constantFrom("", "", "", "", ",", "}", "\ufeff", "x"),
    types: fc.constantFrom(
      ...[["application/json"], ["application/json"], ["application/json", "application/json"]],
      ...[["application/json", "text/plain"], ['application/json; x="a;b\\""; charset="utf-8"']],
    ),
  })
  .map(({ value, lastKey, levels, marks, space, end, types: sentTypes }): Sent => {
    const inner = [`"a"${space}:${value.json}`, '"__proto__":0', `${lastKey}${space}:1`].join(`${space},${space}`);
    const x = `${"[".repeat(levels)}{${inner}}${"]".repeat(levels)}`;
    const json = `{"consumerTripPartnerExternalReference":"${canary}",${space}"x":${x}}${end}`;
    const isReadable = marks < 2 && end === "" && !repeatedKeys.includes(lastKey) && new Set(sentTypes).size === 1;
    const status = !isReadable ? "400" : value.isAllowed && levels <= 12 ? "200" : "422";
    return { bytes: postOf("\ufeff".repeat(marks) + json, { types: sentTypes }), requests: 1, statuses: [status] };
  });

/** Values of a form, and whether they are UTF-8. */
const formValues: readonly [value: string, isUtf8: boolean][] = [
  ...(["1", "", "%", "%4", "%zz%", "a+b", "[]", "%00", "\ud83d\ude00", "%F0%9F%98%80", "x\r\n"] as const).map(
    (value) => [value, true] as const satisfies [string, boolean],
  ),
  ...(["%FF", "%ED%A0%80", "%C3"] as const).map((value) => [value, false] as const satisfies [string, boolean]),
];

/** Forms whose status follows from how they are built. */
const judgedForm = fc
  .record({
    value: fc.constantFrom(...formValues),
    name: fc.constantFrom("x", "x[0]", "x[]", "amp;consumerPhone", "%", "__proto__", "x%00"),
    times: fc.constantFrom(1, 1, 2, 1_998, 1_999),
    isListedTwice: fc.constantFrom(false, false, true),
    marks: fc.constantFrom(0, 0, 1, 2),
    end: fc.constantFrom("", "\n", "&", "&\r\n"),
  })
  .map(({ value: [value, isUtf8], name, times, isListedTwice, marks, end }): Sent => {
    const listed = `consumerTripPartnerExternalReference=${canary}${isListedTwice ? "&consumerPhone=1&consumerPhone=2" : ""}`;
    const form = `${"\ufeff".repeat(marks)}${listed}${`&${name}=${value}`.repeat(times)}${end}`;
    const isReadable = marks < 2 && isUtf8 && !isListedTwice;
    // The payload, the reference, and an array of all values.
    const values = times === 1 ? 3 : 3 + times;
    const status = !isReadable ? "400" : values <= 2_000 ? "200" : "422";
    return { bytes: postOf(form, { types: ["application/x-www-form-urlencoded"] }), requests: 1, statuses: [status] };
  });

const valid = postOf(JSON.stringify(reference));

/** Requests for which Node hands the connection over. A valid request may come before and after. */
const handedOver = fc
  .record({
    head: fc.constantFrom(
      "CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n",
      "CONNECT a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345",
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ),
    before: fc.constantFrom([], [valid]),
    after: fc.constantFrom([], [valid]),
  })
  .map(({ head, before, after }): Sent => {
    return { bytes: Buffer.concat([...before, Buffer.from(head), ...after]), requests: before.length + 1 };
  });

const pipelined = fc
  .record({
    one: fc.constantFrom(
      ...[valid, postOf("{}"), postOf(JSON.stringify(reference), { secret: expiredSecret })],
      Buffer.from("GET /x HTTP/1.1\r\nHost: x\r\n\r\n"),
    ),
    count: fc.oneof(fc.integer({ min: 2, max: 40 }), fc.constantFrom(16, 17, 3_000)),
  })
  .map(({ one, count }): Sent => ({ bytes: Buffer.concat(Array(count).fill(one)), requests: undefined }));

const resetAnywhere = fc
  .record({
    sent: fc.oneof(ordinary, handedOver, pipelined),
    end: fc.nat(),
    isWhole: fc.boolean(),
    reset: fc.constantFrom("at once" as const, "at the answer" as const),
  })
  .map(({ sent, end, isWhole, reset }): Sent => {
    if (isWhole || sent.bytes.length === 0) return { ...sent, reset };
    return { bytes: sent.bytes.subarray(0, 1 + (end % sent.bytes.length)), requests: undefined, reset };
  });

export const connection = weighted<Sent>(
  ...([
    [12, ordinary],
    [1, hostile],
    [2, judged],
    [1, judgedForm],
    [1, handedOver],
    [1, pipelined],
    [3, resetAnywhere],
  ] as const),
);

/** @param choices each with its weight */
function weighted<Value>(
  ...choices: (readonly [weight: number, arbitrary: fc.Arbitrary<Value>])[]
): fc.Arbitrary<Value> {
  return fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));
}

function mostly(usual: string, others: readonly string[]): fc.Arbitrary<string> {
  return weighted([12, fc.constant(usual)], [1, fc.constantFrom(...others)]);
}

function postOf(
  content: string,
  { secret = validSecret, types: sentTypes = ["application/json"] }: { secret?: string; types?: string[] } = {},
): Buffer {
  const typeLines = sentTypes.map((type) => `Content-Type: ${type}\r\n`).join("");
  const head = `POST /booking-event/create/${secret} HTTP/1.1\r\nHost: localhost\r\n${typeLines}`;
  return Buffer.from(`${head}Content-Length: ${Buffer.byteLength(content)}\r\n\r\n${content}`);
}

function toChunks(content: Uint8Array): Buffer {
  const end = Buffer.from("0\r\n\r\n");
  if (content.length === 0) return end;
  return Buffer.concat([Buffer.from(`${content.length.toString(16)}\r\n`), content, Buffer.from("\r\n"), end]);
}
