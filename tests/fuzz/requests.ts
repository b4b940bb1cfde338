import * as fc from "fast-check";

/** Stands in each body, key and header that is sent; none of it may come out of the service's log. */
export const canary = "canary-7d20b4";

const kinds = ["create", "update", "delete"] as const;
const paths = [
  ...kinds.map((kind) => `/booking-event/${kind}/`),
  "/booking-event/CREATE/",
  "/booking-event//",
  "//booking-event/create/",
  "/booking-event/create/../update/",
  "/",
];
const pathEnds = ["", "/", "//", "?", `?x=${canary}`, "#", "%2F", "%00", "%E0%A4%A", "/..", ";x", "%"];
const types = [
  "application/json",
  "application/x-www-form-urlencoded",
  "APPLICATION/JSON; charset=UTF-8",
  'application/json; charset="utf-8"',
  "application/json; charset=utf-16",
  "application/problem+json",
  "application/json, text/plain",
  "multipart/form-data; boundary=x",
  "text/plain",
  "",
  ";",
];
const oddHeaders = [
  "Content-Encoding: gzip",
  "Content-Encoding: identity",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: gzip, chunked",
  "Content-Length: 0",
  "Content-Length: 7",
  "Content-Length: 99999999",
  "Content-Length: -1",
  "Expect: 100-continue",
  "Expect: anything",
  "Connection: close",
  "Connection: upgrade",
  "Upgrade: websocket",
  "Connection: upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA",
  "Trailer: x",
  "X-Dry-Run: true",
  `X-Dry-Run: ${canary}`,
  `Idempotency-Key: ${canary}`,
  "Idempotency-Key:",
  "webhook-id: a, b",
  "webhook-id: another",
  "Content-Type: application/json",
  "Content-Type: text/plain",
  `X-Forwarded-For: ${canary}, 192.0.2.1`,
  "Host: another",
  `X-Long: ${"x".repeat(9_000)}`,
];
const methods = ["GET", "HEAD", "PUT", "OPTIONS", "TRACE", "DELETE", "BREW", "post", "CONNECT"];
/** What parsers trip over. */
const oddTexts = [
  ...["\0", "\ud800", "\udc00x", "\u2028", "\ufeff", "__proto__", "constructor", "toString", "hasOwnProperty"],
  ...["%00", "%", "a[b]", "a.b", "[]", "null", "1e999", "-0", "2026-02-31", "9".repeat(400), "x".repeat(2_000)],
];
const listedFields = [
  "consumerTripPartnerExternalReference",
  "consumerPartnerExternalReference",
  "consumerGivenName",
  "consumerPhone",
  "consumerEmail",
  "agentEmail",
  "consumerTripArrivalDate",
  "consumerTripBookingDate",
  "consumerLanguage",
];

const text = fc.oneof(
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 30 }) },
  { weight: 1, arbitrary: fc.constantFrom(...oddTexts) },
  { weight: 4, arbitrary: fc.constantFrom("Ada", "Zoë", "+442071838750", "2027-06-14", "a@example.org") },
  { weight: 4, arbitrary: fc.string({ maxLength: 10 }).map((tail) => canary + tail) },
);
const name = fc.oneof(fc.constantFrom(...listedFields), fc.constantFrom(...listedFields), text);

const reference = { consumerTripPartnerExternalReference: "TRIP-1" };

/** An object as partners send it, and as they should not. */
export const payload: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: fc.dictionary(name, text, { maxKeys: 4 }).map((fields) => ({ ...fields, ...reference })) },
  { weight: 4, arbitrary: fc.dictionary(name, fc.oneof(text, fc.jsonValue({ maxDepth: 3 })), { maxKeys: 8 }) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 20, depthSize: "large" }) },
);

const jsonBody = payload.map((value) => JSON.stringify(value) ?? "");
const formBody = fc
  .array(fc.tuple(name, text), { maxLength: 8 })
  .map((fields) =>
    new URLSearchParams(fields.map(([key, value]): [string, string] => [key, value.toWellFormed()])).toString(),
  );
const body = fc.oneof(
  { weight: 4, arbitrary: jsonBody.map((json) => Buffer.from(json)) },
  { weight: 2, arbitrary: formBody.map((form) => Buffer.from(form)) },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom(
        "",
        "{",
        "[]",
        " ",
        "\ufeff",
        "\ufeff\ufeff",
        '{"a":1,"a":2}',
        "[".repeat(65_536),
        "a=1&a=2",
        "x".repeat(70_000),
      )
      .map((b) => Buffer.from(b)),
  },
);

const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;
const listOf = (count: number, value: string) => `[${Array(count).fill(value).join()}]`;
/** Each is one object with a reference, at a limit of what a payload may be or somewhat beyond it: 200 or 422. */
const hostileFields = [
  // With the object itself, its reference and the list, 2,000 and 2,001 JSON values.
  ...[`"x":${listOf(1_997, "0")}`, `"x":${listOf(1_998, "0")}`],
  // Nearly 64 KiB.
  ...[`"x":${listOf(21_700, "{}")}`, `"x":${listOf(21_700, "[]")}`, `"x":${listOf(32_000, "1")}`],
  ...[15, 16, 17, 1_000, 10_000].map((levels) => `"x":${nested(levels)}`),
  Array.from({ length: 5_000 }, (_, index) => `"k${index}":0`).join(),
  ...[`"${"n".repeat(65_000)}":0`, `"x":"${"v".repeat(65_000)}"`, `"x":"${"\\u0000".repeat(10_000)}"`],
  `"x":${listOf(10_000, '"\\ud800"').slice(0, 65_000)}`.replace(/,[^,]*$/, "]"),
];
const hostileBodies = hostileFields.map((fields) =>
  Buffer.from(`{"consumerTripPartnerExternalReference":"${canary}",${fields}}`),
);

/** At most 12 digits that count, however they are written: every double holds them. */
const heldNumber = fc
  .record({
    sign: fc.constantFrom("", "-"),
    digits: fc.nat(10 ** 9).map(String),
    fraction: fc.constantFrom("", ".0", ".50", `.25${"0".repeat(40)}`),
    exponent: fc.constantFrom("", "", "e0", "E+2", "e-3", "e-05", "e-20"),
  })
  .map(({ sign, digits, fraction, exponent }) => sign + digits + fraction + exponent);
/** No double needs more than 17 digits to be told from its neighbours, so none is printed with 18 or more. */
const roundedNumber = fc
  .record({
    digits: fc.stringMatching(/^[1-9][0-9]{16,40}[1-9]$/),
    at: fc.nat(),
    exponent: fc.constantFrom("", "e5", "E-9"),
  })
  .map(({ digits, at, exponent }) => {
    const point = 1 + (at % (digits.length - 1));
    return `${digits.slice(0, point)}.${digits.slice(point)}${exponent}`;
  });
const overflowing = fc.constantFrom("1e-400", "-1e-400", "1e400", "1e21", "9007199254740993", "-9007199254740992");

/** Bodies of which the right status is known by the way they are made. */
interface JudgedBody {
  body: Buffer;
  types: readonly string[];
  status: "200" | "400" | "422";
}

const judgedBody: fc.Arbitrary<JudgedBody> = fc
  .record({
    value: fc.oneof(
      { weight: 4, arbitrary: fc.record({ text: heldNumber, isHeld: fc.constant(true) }) },
      { weight: 2, arbitrary: fc.record({ text: fc.oneof(roundedNumber, overflowing), isHeld: fc.constant(false) }) },
      {
        weight: 2,
        arbitrary: fc.record({
          text: fc.string().map((t) => JSON.stringify(t.replaceAll("\0", ""))),
          isHeld: fc.constant(true),
        }),
      },
    ),
    repeated: fc.constantFrom(...['"a"', '"\\u0061"', '"__proto__"', '"\\u005f_proto__"', '"b"', '""', '"0"']),
    levels: fc.constantFrom(0, 0, 1, 12, 10_000),
    marks: fc.constantFrom(0, 0, 0, 1, 2),
    space: fc.constantFrom("", "", " ", "\r\n\t"),
    end: fc.constantFrom("", "", "", "", ",", "}", "\ufeff", "x"),
    types: fc.constantFrom(
      ...[["application/json"], ["application/json"], ["application/json", "application/json"]],
      ...[["application/json", "text/plain"], ['application/json; x="a;b\\""; charset="utf-8"']],
    ),
  })
  .map(({ value, repeated, levels, marks, space, end, types }) => {
    const isRepeated = repeated !== '"b"' && repeated !== '""' && repeated !== '"0"';
    const inner = [`"a"${space}:${value.text}`, '"__proto__":0', `${repeated}${space}:1`].join(`${space},${space}`);
    const nestedText = `${"[".repeat(levels)}{${inner}}${"]".repeat(levels)}`;
    const text = `{"consumerTripPartnerExternalReference":"${canary}",${space}"x":${nestedText}}${end}`;
    const isReadable = marks < 2 && end === "" && !isRepeated && new Set(types).size === 1;
    const isValid = value.isHeld && levels <= 12;
    return {
      body: Buffer.from("\ufeff".repeat(marks) + text),
      types,
      status: !isReadable ? "400" : isValid ? "200" : "422",
    };
  });

interface Edit {
  at: number;
  kind: "flip" | "remove" | "repeat" | "insert" | "cut";
  length: number;
  bytes: Uint8Array;
}

const edits: fc.Arbitrary<Edit[]> = fc.array(
  fc.record({
    at: fc.nat(),
    kind: fc.constantFrom("flip", "remove", "repeat", "insert", "cut"),
    length: fc.integer({ min: 1, max: 40 }),
    bytes: fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 8 }),
      fc.constantFrom("\r\n", "\r\n\r\n", "\n", "0\r\n\r\n", "\0", "ffffffffffffffff\r\n").map((t) => Buffer.from(t)),
    ),
  }),
  { maxLength: 6 },
);

/** What is sent over one connection. */
export interface Sent {
  bytes: Buffer;
  /**
   * How many requests it is, as any HTTP server must see it; undefined: nobody knows. The client waits for that many
   * answers, and otherwise closes its side after the last byte.
   */
  requests: number | undefined;
  /** The client resets the connection: once it has sent everything, or at the first byte of an answer. */
  reset?: "at once" | "at the answer";
  /** No other status is right. */
  statuses?: readonly string[];
}

/**
 * One or more requests, each right, odd or wrong, and then perhaps some of the bytes changed.
 *
 * @param secrets of which each request has one; the first is a valid one
 */
export function connectionsWith(secrets: readonly string[]): fc.Arbitrary<Sent> {
  const validSecret = secrets[0] ?? "";
  const anyBut = <Value>(usual: Value, other: readonly Value[]) =>
    fc.oneof({ weight: 12, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...other) });
  const request = fc
    .record({
      method: anyBut("POST", methods),
      path: fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...paths.slice(0, 3)) }, fc.constantFrom(...paths)),
      secret: anyBut(validSecret, secrets),
      end: anyBut("", pathEnds),
      type: fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...types.slice(0, 2)) }, fc.constantFrom(...types)),
      odd: fc.oneof({ weight: 4, arbitrary: fc.constant([]) }, fc.subarray(oddHeaders, { maxLength: 3 })),
      framing: fc.constantFrom("length", "length", "length", "length", "chunked", "none"),
      version: anyBut("1.1", ["1.0", "2.0"]),
      body,
    })
    .map(({ method, path, secret, end, type, odd, framing, version, body: content }) => {
      const headers = [
        "Host: localhost",
        `Content-Type: ${type}`,
        ...(framing === "length" ? [`Content-Length: ${content.length}`] : []),
        ...(framing === "chunked" ? ["Transfer-Encoding: chunked"] : []),
        ...odd,
      ];
      const head = `${method} ${path}${secret}${end} HTTP/${version}\r\n${headers.join("\r\n")}\r\n\r\n`;
      const framed = framing === "chunked" ? toChunk(content) : content;
      const isClear = odd.length === 0 && framing !== "none" && version === "1.1";
      return { bytes: Buffer.concat([Buffer.from(head, "latin1"), framed]), isClear };
    });
  const ordinary: fc.Arbitrary<Sent> = fc
    .tuple(
      fc.array(request, { minLength: 1, maxLength: 3 }),
      fc.oneof({ weight: 2, arbitrary: fc.constant<Edit[]>([]) }, edits),
    )
    .map(([requests, changes]) => ({
      bytes: changes.reduce(applyEdit, Buffer.concat(requests.map(({ bytes }) => bytes))),
      requests: changes.length === 0 && requests.every(({ isClear }) => isClear) ? requests.length : undefined,
    }));

  const valid = Buffer.from(JSON.stringify(reference));
  const hostile: fc.Arbitrary<Sent> = fc
    .constantFrom(...hostileBodies)
    .map((content) => ({ bytes: postOf(validSecret, content), requests: 1, statuses: ["200", "422"] }));
  const judged: fc.Arbitrary<Sent> = judgedBody.map(({ body: content, types: sentTypes, status }) => ({
    bytes: postOf(validSecret, content, sentTypes),
    requests: 1,
    statuses: [status],
  }));
  /** Another request may follow at once. */
  const handedOver: fc.Arbitrary<Sent> = fc
    .record({
      head: fc.constantFrom(
        "CONNECT elsewhere.example:443 HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n",
        "CONNECT a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      ),
      before: fc.boolean(),
      after: fc.boolean(),
    })
    .map(({ head, before, after }) => {
      const post = (isThere: boolean) => (isThere ? postOf(validSecret, valid) : Buffer.alloc(0));
      return { bytes: Buffer.concat([post(before), Buffer.from(head), post(after)]), requests: before ? 2 : 1 };
    });
  const pipelined: fc.Arbitrary<Sent> = fc
    .record({
      one: fc.constantFrom(
        ...[postOf(validSecret, valid), postOf(validSecret, Buffer.from("{}")), postOf(secrets[1] ?? "", valid)],
        Buffer.from("GET /x HTTP/1.1\r\nHost: x\r\n\r\n"),
      ),
      count: fc.oneof(fc.integer({ min: 2, max: 40 }), fc.constantFrom(16, 17, 3_000)),
    })
    .map(({ one, count }) => ({ bytes: Buffer.concat(Array(count).fill(one)), requests: undefined }));
  const resetAnywhere: fc.Arbitrary<Sent> = fc
    .record({
      sent: fc.oneof(ordinary, handedOver, pipelined),
      end: fc.nat(),
      isWhole: fc.boolean(),
      reset: fc.constantFrom("at once" as const, "at the answer" as const),
    })
    .map(({ sent, end, isWhole, reset }) => {
      if (isWhole || sent.bytes.length === 0) return { ...sent, reset };
      return { bytes: sent.bytes.subarray(0, 1 + (end % sent.bytes.length)), requests: undefined, reset };
    });
  return fc.oneof(
    { weight: 12, arbitrary: ordinary },
    { weight: 1, arbitrary: hostile },
    { weight: 2, arbitrary: judged },
    { weight: 1, arbitrary: handedOver },
    { weight: 1, arbitrary: pipelined },
    { weight: 3, arbitrary: resetAnywhere },
  );
}

function postOf(secret: string, content: Buffer, sentTypes: readonly string[] = ["application/json"]): Buffer {
  const typeLines = sentTypes.map((type) => `Content-Type: ${type}\r\n`).join("");
  const head = `POST /booking-event/create/${secret} HTTP/1.1\r\nHost: localhost\r\n${typeLines}`;
  return Buffer.concat([Buffer.from(`${head}Content-Length: ${content.length}\r\n\r\n`), content]);
}

function toChunk(content: Buffer): Buffer {
  const end = Buffer.from("0\r\n\r\n");
  return content.length === 0
    ? end
    : Buffer.concat([Buffer.from(`${content.length.toString(16)}\r\n`), content, Buffer.from("\r\n"), end]);
}

function applyEdit(bytes: Buffer, { at, kind, length, bytes: inserted }: Edit): Buffer {
  const start = bytes.length === 0 ? 0 : at % bytes.length;
  const [before, slice, after] = [
    bytes.subarray(0, start),
    bytes.subarray(start, start + length),
    bytes.subarray(start + length),
  ];
  switch (kind) {
    case "flip":
      return Buffer.concat([before, slice.map((byte) => byte ^ (1 << (length % 8))), after]);
    case "remove":
      return Buffer.concat([before, after]);
    case "repeat":
      return Buffer.concat([before, slice, slice, after]);
    case "insert":
      return Buffer.concat([before, inserted, slice, after]);
    case "cut":
      return Buffer.from(before);
  }
}
