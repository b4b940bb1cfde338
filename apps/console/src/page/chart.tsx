// <BarChart title="Events a minute" bars={[{ label: "13:05", value: 12, compared: 9 }]} unit="events" />: bars drawn on the server, with a line for what they are compared with (such as last week), and the numbers as a table behind "Numbers".
import type { VNode } from "preact";

interface Bar {
  label: string;
  value: number;
  compared?: number;
}

interface BarChartProps {
  /** What the numbers are. It is read to those who do not see the bars. */
  title: string;
  bars: readonly Bar[];
  /** What `compared` is, such as "a week before". */
  comparedWith?: string;
}

const [width, height, gap] = [720, 120, 2];

export function BarChart({ title, bars, comparedWith = "before" }: BarChartProps): VNode {
  const max = Math.max(1, ...bars.flatMap(({ value, compared = 0 }) => [value, compared]));
  const step = width / Math.max(1, bars.length);
  const y = (value: number) => height - (value / max) * height;
  const points = bars.map(({ compared }, index) => `${round((index + 0.5) * step)},${round(y(compared ?? 0))}`);
  const isCompared = bars.some(({ compared }) => compared !== undefined);
  return (
    <figure class="chart">
      <figcaption>
        {title} <span class="faint">up to {format(max)}</span>
        {isCompared && <span class="key">line: {comparedWith}</span>}
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
        {isCompared && <polyline points={points.join(" ")} />}
      </svg>
      <div class="axis" aria-hidden="true">
        <span>{bars[0]?.label}</span>
        <span>{bars.at(-1)?.label}</span>
      </div>
      <Numbers title={title} bars={bars} comparedWith={isCompared ? comparedWith : undefined} />
    </figure>
  );
}

function Numbers({
  title,
  bars,
  comparedWith,
}: {
  title: string;
  bars: readonly Bar[];
  comparedWith: string | undefined;
}): VNode {
  return (
    <details>
      <summary>Numbers</summary>
      <table>
        <caption class="hidden">{title}</caption>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col" class="number">
              Number
            </th>
            {comparedWith !== undefined && (
              <th scope="col" class="number">
                {comparedWith}
              </th>
            )}
          </tr>
        </thead>
        <tbody>
          {bars.map(({ label, value, compared }) => (
            <tr>
              <th scope="row">{label}</th>
              <td class="number">{format(value)}</td>
              {comparedWith !== undefined && <td class="number">{format(compared ?? 0)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}

function describe(title: string, bars: readonly Bar[]): string {
  const last = bars.at(-1);
  return last === undefined
    ? `${title}: nothing`
    : `${title}: from ${bars[0]?.label} to ${last.label}, at last ${format(last.value)}`;
}

const round = (value: number) => Math.round(10 * value) / 10;
const format = (value: number) => value.toLocaleString("en", { maximumFractionDigits: 1 });
