import type { Machine } from "./machine.ts";
import { formatMachine } from "./machine.ts";
import { type Comparison, type FigureName, figures, type Measurement, type Section } from "./scenario.ts";
import { ratiosByRound, type Spread, spreadOf } from "./statistics.ts";
import { formatTable } from "./table.ts";

export interface Report {
  machine: Machine;
  rounds: number;
  sections: (Section & { ratios: Ratio[] })[];
}

interface Ratio extends Comparison, Spread {
  isMet: boolean;
}

export function createReport(machine: Machine, rounds: number, sections: Section[]): Report {
  return {
    machine,
    rounds,
    sections: sections.map((section) => ({
      ...section,
      ratios: section.comparisons.flatMap((c) => toRatio(section, c)),
    })),
  };
}

/** Nothing where the operating system did not tell one of the figures. */
function toRatio({ measurements }: Section, comparison: Comparison): Ratio[] {
  const [of, to] = [comparison.of, comparison.to].map((name) => valuesOf(measurements[name] ?? [], comparison.figure));
  if (of === undefined || to === undefined) return [];
  const ratios = figures[comparison.figure].isCost ? ratiosByRound(to, of) : ratiosByRound(of, to);
  const spread = spreadOf(ratios);
  const { atLeast = Number.NEGATIVE_INFINITY, atMost = Number.POSITIVE_INFINITY } = comparison;
  return [{ ...comparison, ...spread, isMet: spread.median >= atLeast && spread.median <= atMost }];
}

function valuesOf(measurements: Measurement[], figure: FigureName): number[] | undefined {
  const values = measurements.map((measurement) => measurement[figure]);
  return values.every((value) => value !== undefined) && values.length > 0 ? values : undefined;
}

export function formatReport({ machine, rounds, sections }: Report): string {
  return [
    formatMachine(machine),
    `Medians of ${rounds} rounds.`,
    ...sections.flatMap((section) => [
      "",
      `## ${section.title}`,
      "",
      formatMeasurements(section),
      "",
      formatRatios(section.ratios),
    ]),
  ].join("\n");
}

function formatMeasurements({ measurements }: Section): string {
  const names = (Object.keys(figures) as FigureName[]).filter((figure) =>
    Object.values(measurements).some((rounds) => valuesOf(rounds, figure) !== undefined),
  );
  const rows = Object.entries(measurements).map(([contestant, rounds]) => [
    contestant,
    ...names.map((figure) => {
      const values = valuesOf(rounds, figure);
      return values === undefined ? "" : format(spreadOf(values).median, figures[figure].digits);
    }),
  ]);
  return formatTable(["", ...names.map((figure) => figures[figure].title)], rows);
}

function formatRatios(ratios: Ratio[]): string {
  const rows = ratios.map(({ figure, of, to, median, min, max, atLeast, atMost, isMet }) => {
    const limit = atLeast !== undefined ? `≥ ${atLeast}` : atMost !== undefined ? `≤ ${atMost}` : "";
    return [
      `${of} to ${to}, ${figures[figure].title}`,
      format(median, 2),
      `${format(min, 2)} – ${format(max, 2)}`,
      limit,
      limit === "" ? "" : isMet ? "yes" : "NO",
    ];
  });
  return formatTable(["Times as good", "median", "spread", "target", "met"], rows);
}

function format(value: number, digits: number): string {
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
