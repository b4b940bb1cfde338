// <BarChart title="Events a minute" bars={[{ label: "13:05", value: 12, weekBefore: 9 }]} />: bars drawn on the server, with a line for the week before, and the numbers as a table behind "Numbers".
import type { VNode } from "preact";
import { formatRate } from "./numbers.ts";
import { type Column, Table } from "./table.tsx";

interface Bar {
  label: string;
  value: number;
  weekBefore: number;
}

const [width, height, gap] = [720, 120, 2];

/** @param props.title what the numbers are. It is read to those who do not see the bars */
export function BarChart({ title, bars }: { title: string; bars: readonly Bar[] }): VNode {
  const max = Math.max(1, ...bars.flatMap(({ value, weekBefore }) => [value, weekBefore]));
  const step = width / Math.max(1, bars.length);
  const y = (value: number) => height - (value / max) * height;
  const points = bars.map(({ weekBefore }, index) => `${round((index + 0.5) * step)},${round(y(weekBefore))}`);
  return (
    <figure class="chart">
      <figcaption>
        {title} <span class="faint">up to {formatRate(max)}</span>
        <span class="key">line: a week before</span>
      </figcaption>
      <svg role="img" aria-label={describe(title, bars)} viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none">
        {bars.map(({ value }, index) => (
          <rect
            x={round(index * step)}
            y={round(y(value))}
            width={round(Math.max(1, step - gap))}
            height={round(height - y(value))}
          />
        ))}
        <polyline points={points.join(" ")} />
      </svg>
      <div class="axis" aria-hidden="true">
        <span>{bars[0]?.label}</span>
        <span>{bars.at(-1)?.label}</span>
      </div>
      <details>
        <summary>Numbers</summary>
        <Table caption={title} isCaptionHidden rows={bars} columns={columns} empty="None." />
      </details>
    </figure>
  );
}

const columns: Column<Bar>[] = [
  { title: "Time", isName: true, cell: ({ label }) => label },
  { title: "Number", isNumber: true, cell: ({ value }) => formatRate(value) },
  { title: "A week before", isNumber: true, cell: ({ weekBefore }) => formatRate(weekBefore) },
];

function describe(title: string, bars: readonly Bar[]): string {
  const last = bars.at(-1);
  return last === undefined
    ? `${title}: nothing`
    : `${title}: from ${bars[0]?.label} to ${last.label}, at last ${formatRate(last.value)}`;
}

const round = (value: number) => Math.round(10 * value) / 10;
