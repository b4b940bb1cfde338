/** A column of rows that are sent to PostgreSQL as one array for each column. */
export interface Column<Row> {
  name: string;
  /** As in SQL. */
  type: string;
  encode: (rows: readonly Row[]) => Buffer;
}

export function column<Row, Value>(
  name: string,
  type: string,
  encodeValues: (values: Value[]) => Buffer,
  read: (row: Row) => Value,
): Column<Row> {
  return { name, type, encode: (rows) => encodeValues(rows.map(read)) };
}

export function encode<Row>(columns: readonly Column<Row>[], rows: readonly Row[]): Buffer[] {
  return columns.map((each) => each.encode(rows));
}

/** SQL that turns the columns' parameters, which are the first ones, into rows. */
export function toRows(columns: readonly Column<never>[]): string {
  const values = columns.map(({ name, type }, index) => `unnest($${index + 1}::${type}[]) as ${name}`);
  return `(select ${values.join(", ")})`;
}

/** SQL that sets columns to those of the rows `changed`. */
export function assign(names: readonly string[]): string {
  return names.map((name) => `${name} = changed.${name}`).join(", ");
}
