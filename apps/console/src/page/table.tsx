// <Table caption="Partners" rows={partners} columns={[{ title: "Partner", cell: (p) => p.id, isName: true }, { title: "Events", cell: …, isNumber: true }]} empty="There is no partner." />
// <TableSection title="Secrets" … />: the same as a part of a page, with a heading.
// On a phone, each row becomes a record whose cells are labelled with their columns' titles.
import type { ComponentChildren, VNode } from "preact";
import { Section, type SectionProps } from "./section.tsx";
import { Shown } from "./shown.tsx";

export interface Column<Row> {
  title: string;
  /** What is shown of it: see {@link Shown}. */
  cell: (row: Row) => ComponentChildren;
  /** What the row is about: its header. One column of a table. */
  isName?: boolean;
  /** Aligned at the right, with figures of one width. */
  isNumber?: boolean;
  /** Takes what width is left. */
  isWide?: boolean;
}

interface TableProps<Row> {
  /** Says what the rows are. */
  caption: ComponentChildren;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  /** What to say if there is no row. */
  empty: ComponentChildren;
  /** The caption is then for screen readers only, since a heading says the same. */
  isCaptionHidden?: boolean;
}

export function Table<Row>({ caption, columns, rows, empty, isCaptionHidden = false }: TableProps<Row>): VNode {
  if (rows.length === 0) return <Empty>{empty}</Empty>;
  return (
    <div class={isBroad(columns) ? "table many" : "table"}>
      <table {...as.table}>
        <caption class={isCaptionHidden ? "hidden" : undefined}>{caption}</caption>
        <thead {...as.rowgroup}>
          <tr {...as.row}>
            {columns.map((column) => (
              <th scope="col" {...as.columnheader} class={classOf(column)}>
                {column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody {...as.rowgroup}>
          {rows.map((row) => (
            <tr {...as.row}>
              {columns.map((column) => (
                <Cell column={column} row={row} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface TableSectionProps<Row> extends Omit<SectionProps, "children">, Omit<TableProps<Row>, "caption"> {
  /** Below the table. */
  children?: ComponentChildren;
}

export function TableSection<Row>({ columns, rows, empty, children, ...section }: TableSectionProps<Row>): VNode {
  return (
    <Section {...section}>
      <Table caption={section.title} isCaptionHidden columns={columns} rows={rows} empty={empty} />
      {children}
    </Section>
  );
}

/** Tables that need so much room become records where others still fit. */
function isBroad(columns: readonly { isNumber?: boolean }[]): boolean {
  return columns.reduce((room, { isNumber }) => room + (isNumber ? 1 : 2), 0) >= 10;
}

/** The roles that the elements have anyway. Browsers drop those when CSS lays a table out as records. */
const as = {
  table: { role: "table" },
  rowgroup: { role: "rowgroup" },
  row: { role: "row" },
  columnheader: { role: "columnheader" },
  rowheader: { role: "rowheader" },
  cell: { role: "cell" },
} as const;

function Cell<Row>({ column, row }: { column: Column<Row>; row: Row }): VNode {
  const content = <Shown value={column.cell(row)} />;
  if (column.isName === true)
    return (
      <th scope="row" {...as.rowheader} class={classOf(column)}>
        {content}
      </th>
    );
  return (
    <td {...as.cell} class={classOf(column)} data-label={column.title}>
      <div>{content}</div>
    </td>
  );
}

function classOf({ isNumber = false, isWide = false }: Pick<Column<never>, "isNumber" | "isWide">): string | undefined {
  return [...(isNumber ? ["number"] : []), ...(isWide ? ["wide"] : [])].join(" ") || undefined;
}

/** What stands where there is nothing to show. It says why, and perhaps what to do. */
export function Empty({ children }: { children: ComponentChildren }): VNode {
  return <p class="empty">{children}</p>;
}
