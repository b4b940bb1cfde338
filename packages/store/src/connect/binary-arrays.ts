/**
 * Arrays as PostgreSQL's binary protocol has them (`array_send` and the `_send` functions of its types). As text, each
 * element would be quoted here and parsed there, which costs both sides more than the rest of a small statement.
 *
 * The query must name the type of the parameter, as in `$1::text[]`. PostgreSQL compares it with the one in the array.
 *
 * An array of nothing but nulls is sent without elements, so a column that is mostly empty costs nearly nothing: next to
 * longer arrays, `unnest` makes nulls of what is missing.
 *
 * Wide rows are made of arrays by `select unnest(…), unnest(…)`. `from unnest(…, …)` copies each array into a store of
 * its own first, and all values out of it again.
 */

/** The ids of the types in `pg_type`, which never change. */
const oids = {
  boolean: 16,
  bytea: 17,
  bigint: 20,
  integer: 23,
  text: 25,
  date: 1082,
  timestamptz: 1184,
  uuid: 2950,
};

/** Number of dimensions, whether there are nulls, type, number of elements, first index: each an `int4`. */
const headerBytes = 20;
const lengthBytes = 4;
const uuidCharacters = 36;
/** The maximum for one UTF-16 code unit in UTF-8. */
const bytesPerCharacter = 3;

export function texts(values: readonly (string | null)[]): Buffer {
  const characters = values.reduce((sum, value) => sum + (value?.length ?? 0), 0);
  return encode(oids.text, values, bytesPerCharacter * characters, writeText);
}

/** Such as a code, a phone number or a short name. */
const shortCharacters = 24;

/** Writes a short text without a call into Node, which takes several times as long as the text. */
function writeText(buffer: Buffer, value: string, offset: number): number {
  const { length } = value;
  if (length > shortCharacters) return buffer.write(value, offset);
  for (let index = 0; index < length; index += 1) {
    const code = value.charCodeAt(index);
    if (code > lastAscii) return buffer.write(value, offset);
    buffer[offset + index] = code;
  }
  return length;
}

const lastAscii = 0x7f;

export function byteas(values: readonly (Buffer | null)[]): Buffer {
  const bytes = values.reduce((sum, value) => sum + (value?.length ?? 0), 0);
  return encode(oids.bytea, values, bytes, (buffer, value, offset) => value.copy(buffer, offset));
}

/** Writes all values as one hexadecimal text, their lengths included, which takes a third of the time. */
export function uuids(values: readonly (string | null)[]): Buffer {
  if (isAllNull(values)) return noElements(oids.uuid);
  const elements = values.map((value) => (value === null ? "ffffffff" : `00000010${checkUuidLength(value)}`));
  const hex = elements.join("").replaceAll("-", "");
  const buffer = Buffer.allocUnsafe(headerBytes + hex.length / 2);
  writeHeader(buffer, { typeOid: oids.uuid, count: values.length, hasNulls: values.includes(null) });
  const written = buffer.write(hex, headerBytes, "hex");
  // Without this, the rest would be whatever was in the memory before.
  if (headerBytes + written !== buffer.length) throw new RangeError(invalidUuid);
  return buffer;
}

const invalidUuid = "A UUID must have 32 hexadecimal digits.";

function checkUuidLength(value: string): string {
  if (value.length !== uuidCharacters) throw new RangeError(invalidUuid);
  return value;
}

/** @param values whole numbers that a double holds exactly */
export function bigints(values: readonly (number | null)[]): Buffer {
  return encode(oids.bigint, values, 8 * values.length, writeBigint);
}

export function integers(values: readonly (number | null)[]): Buffer {
  return encode(oids.integer, values, 4 * values.length, (buffer, value, offset) => {
    buffer.writeInt32BE(value, offset);
    return 4;
  });
}

export function booleans(values: readonly (boolean | null)[]): Buffer {
  return encode(oids.boolean, values, values.length, (buffer, value, offset) => {
    buffer[offset] = value ? 1 : 0;
    return 1;
  });
}

/** PostgreSQL counts days and microseconds from here. */
const epochMs = Date.UTC(2000, 0, 1);
const dayMs = 24 * 60 * 60 * 1_000;

export function timestamps(values: readonly (Date | null)[]): Buffer {
  return encode(oids.timestamptz, values, 8 * values.length, (buffer, value, offset) =>
    writeBigint(buffer, (value.getTime() - epochMs) * 1_000, offset),
  );
}

/** @param values moments in UTC such as `2026-06-14T07:27:17.335Z`, with any number of digits after the point */
export function moments(values: readonly (string | null)[]): Buffer {
  return encode(oids.timestamptz, values, 8 * values.length, (buffer, value, offset) => {
    const [milliseconds, microseconds] = [Date.parse(value) - epochMs, microsecondsOf(value)];
    // From the year 2285 on, a double does not hold the sum exactly.
    if (milliseconds < maxExactMs) return writeBigint(buffer, milliseconds * 1_000 + microseconds, offset);
    buffer.writeBigInt64BE(BigInt(milliseconds) * 1_000n + BigInt(microseconds), offset);
    return 8;
  });
}

const maxExactMs = Math.floor(Number.MAX_SAFE_INTEGER / 1_000);
const digitsToMillisecond = "2026-06-14T07:27:17.335".length;

/** Those that a `Date` leaves out. PostgreSQL has six digits, too. */
function microsecondsOf(moment: string): number {
  return moment.length <= digitsToMillisecond + 1
    ? 0
    : Number(
        moment
          .slice(digitsToMillisecond, digitsToMillisecond + 3)
          .replace("Z", "")
          .padEnd(3, "0"),
      );
}

/** @param values days such as `2026-06-14` */
export function days(values: readonly (string | null)[]): Buffer {
  return encode(oids.date, values, 4 * values.length, (buffer, value, offset) => {
    const day = (Date.parse(value) - epochMs) / dayMs;
    // Buffer would write 0 for what is no number.
    if (!Number.isInteger(day)) throw new RangeError("A day must be a date such as 2026-06-14.");
    buffer.writeInt32BE(day, offset);
    return 4;
  });
}

function writeBigint(buffer: Buffer, value: number, offset: number): number {
  if (!Number.isSafeInteger(value)) throw new RangeError("The number must be an integer below 2^53.");
  const high = Math.floor(value / 2 ** 32);
  buffer.writeInt32BE(high, offset);
  buffer.writeUInt32BE(value - high * 2 ** 32, offset + 4);
  return 8;
}

/**
 * @param maxBytes that all values together may take
 * @param write returns the number of bytes that it has written
 */
function encode<Value>(
  typeOid: number,
  values: readonly (Value | null)[],
  maxBytes: number,
  write: (buffer: Buffer, value: Value, offset: number) => number,
): Buffer {
  if (isAllNull(values)) return noElements(typeOid);
  const buffer = Buffer.allocUnsafe(headerBytes + lengthBytes * values.length + maxBytes);
  let offset = headerBytes;
  let hasNulls = false;
  for (const value of values) {
    if (value === null) hasNulls = true;
    const size = value === null ? 0 : write(buffer, value, offset + lengthBytes);
    buffer.writeInt32BE(value === null ? -1 : size, offset);
    offset += lengthBytes + size;
  }
  writeHeader(buffer, { typeOid, count: values.length, hasNulls });
  return buffer.subarray(0, offset);
}

function isAllNull(values: readonly unknown[]): boolean {
  for (const value of values) if (value !== null) return false;
  return true;
}

/** An array without dimensions. */
function noElements(typeOid: number): Buffer {
  const buffer = Buffer.alloc(3 * 4);
  buffer.writeInt32BE(typeOid, 2 * 4);
  return buffer;
}

function writeHeader(
  buffer: Buffer,
  { typeOid, count, hasNulls }: { typeOid: number; count: number; hasNulls: boolean },
): void {
  const fields = [1, hasNulls ? 1 : 0, typeOid, count, 1];
  for (const [index, field] of fields.entries()) buffer.writeInt32BE(field, 4 * index);
}
