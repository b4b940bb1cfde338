/**
 * Arrays as PostgreSQL's binary protocol has them (`array_send` and the `_send` functions of its types). As text, each
 * element would be quoted here and parsed there, which costs both sides more than the rest of a small statement.
 *
 * The query must name the type of the parameter, as in `$1::text[]`. PostgreSQL compares it with the one in the array.
 *
 * Wide rows are made of arrays by `select unnest(…), unnest(…)`. `from unnest(…, …)` copies each array into a store of
 * its own first, and all values out of it again.
 */

/** The ids of the types in `pg_type`, which never change. */
const oids = { boolean: 16, bytea: 17, bigint: 20, integer: 23, text: 25, timestamptz: 1184, uuid: 2950 };

/** Number of dimensions, whether there are nulls, type, number of elements, first index: each an `int4`. */
const headerBytes = 20;
const lengthBytes = 4;
const uuidBytes = 16;

export function texts(values: readonly (string | null)[]): Buffer {
  return encode(oids.text, values, Buffer.byteLength, (buffer, value, offset) => buffer.write(value, offset));
}

export function byteas(values: readonly (Buffer | null)[]): Buffer {
  return encode(
    oids.bytea,
    values,
    ({ length }) => length,
    (buffer, value, offset) => value.copy(buffer, offset),
  );
}

export function uuids(values: readonly (string | null)[]): Buffer {
  return encode(oids.uuid, values, sizeOf(uuidBytes), (buffer, value, offset) => {
    const written = buffer.write(value.replaceAll("-", ""), offset, uuidBytes, "hex");
    // Without this, the rest would be whatever was in the memory before.
    if (written !== uuidBytes) throw new RangeError("A UUID must have 32 hexadecimal digits.");
  });
}

/** @param values whole numbers that a double holds exactly */
export function bigints(values: readonly (number | null)[]): Buffer {
  return encode(oids.bigint, values, sizeOf(8), writeBigint);
}

export function integers(values: readonly (number | null)[]): Buffer {
  return encode(oids.integer, values, sizeOf(4), (buffer, value, offset) => buffer.writeInt32BE(value, offset));
}

export function booleans(values: readonly (boolean | null)[]): Buffer {
  return encode(oids.boolean, values, sizeOf(1), (buffer, value, offset) => buffer.writeInt8(value ? 1 : 0, offset));
}

/** PostgreSQL counts microseconds from here. */
const epochMs = Date.UTC(2000, 0, 1);

export function timestamps(values: readonly (Date | null)[]): Buffer {
  return encode(oids.timestamptz, values, sizeOf(8), (buffer, value, offset) =>
    writeBigint(buffer, (value.getTime() - epochMs) * 1_000, offset),
  );
}

function sizeOf(bytes: number): () => number {
  return () => bytes;
}

function writeBigint(buffer: Buffer, value: number, offset: number): void {
  if (!Number.isSafeInteger(value)) throw new RangeError("The number must be an integer below 2^53.");
  const high = Math.floor(value / 2 ** 32);
  buffer.writeInt32BE(high, offset);
  buffer.writeUInt32BE(value - high * 2 ** 32, offset + 4);
}

function encode<Value>(
  typeOid: number,
  values: readonly (Value | null)[],
  sizeOfValue: (value: Value) => number,
  write: (buffer: Buffer, value: Value, offset: number) => unknown,
): Buffer {
  const sizes = values.map((value) => (value === null ? null : sizeOfValue(value)));
  const bytes = sizes.reduce<number>((sum, size) => sum + lengthBytes + (size ?? 0), headerBytes);
  const buffer = Buffer.allocUnsafe(bytes);
  let offset = writeHeader(buffer, { typeOid, count: values.length, hasNulls: sizes.includes(null) });
  values.forEach((value, index) => {
    const size = sizes[index] ?? null;
    offset = buffer.writeInt32BE(size ?? -1, offset);
    if (value === null || size === null) return;
    write(buffer, value, offset);
    offset += size;
  });
  return buffer;
}

/** @returns the place after the header */
function writeHeader(
  buffer: Buffer,
  { typeOid, count, hasNulls }: { typeOid: number; count: number; hasNulls: boolean },
): number {
  return [1, hasNulls ? 1 : 0, typeOid, count, 1].reduce((offset, field) => buffer.writeInt32BE(field, offset), 0);
}
