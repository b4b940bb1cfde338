import type { Comparison, Figure, Measurement, Section } from "./scenario.ts";
import { quantile } from "./statistics.ts";

export interface Report {
  /** What the figures were measured on. */
  machine: string;
  rounds: number;
  sections: (Section & { ratios: Ratio[] })[];
}

/** Over all rounds. More than 1 means better. */
interface Ratio extends Comparison {
  median: number;
  min: number;
  max: number;
}

export function createReport(machine: string, rounds: number, sections: Section[]): Report {
  return {
    machine,
    rounds,
    sections: sections.map((section) => ({
      ...section,
      ratios: section.comparisons
        .map((comparison) => toRatio(section, comparison))
        .filter(({ median }) => !Number.isNaN(median)),
    })),
  };
}

/** Each round has its own ratio: what slowed the machine down in one round slowed both sides of it. */
function toRatio({ measurements }: Section, comparison: Comparison): Ratio {
  const { figure, of, to } = comparison;
  const others = measurements[to] ?? [];
  const ratios = (measurements[of] ?? []).map(({ [figure]: value = Number.NaN }, round) => {
    const other = others[round]?.[figure] ?? Number.NaN;
    return figure === "eventsPerSecond" ? value / other : other / value;
  });
  return { ...comparison, median: quantile(ratios, 0.5), min: Math.min(...ratios), max: Math.max(...ratios) };
}

export function printReport({ machine, rounds, sections }: Report): void {
  console.log(`\n${machine}\nMedians of ${rounds} rounds. A ratio above 1 means better.`);
  for (const { title, measurements, ratios } of sections) {
    console.log(`\n${title}`);
    const rows = Object.entries(measurements).map(([variant, each]) => [variant, roundAll(toMedians(each))]);
    console.table(Object.fromEntries(rows));
    const ratioRows = ratios.map(({ figure, of, to, median, min, max }) => [
      `${of} to ${to}, ${figure}`,
      { median: round(median), min: round(min), max: round(max) },
    ]);
    if (ratios.length > 0) console.table(Object.fromEntries(ratioRows));
  }
}

function toMedians(rounds: Measurement[]): Measurement {
  const figures = Object.keys(rounds[0] ?? {}) as Figure[];
  const medianOf = (figure: Figure) =>
    quantile(
      rounds.map(({ [figure]: value = Number.NaN }) => value),
      0.5,
    );
  return Object.fromEntries(figures.map((figure) => [figure, medianOf(figure)]));
}

function roundAll(measurement: Measurement): Measurement {
  return Object.fromEntries(Object.entries(measurement).map(([figure, value]) => [figure, round(value)]));
}

function round(value: number): number {
  return Number(value.toPrecision(4));
}
