import { expect, test } from "vitest";
import { createReport } from "./report.ts";
import { runRounds } from "./rounds.ts";
import type { Comparison, Measurement } from "./scenario.ts";
import { quantile } from "./statistics.ts";

test("a quantile lies between the two values that surround it, whatever their order", () => {
  expect(quantile([4, 1, 3, 2], 0.5)).toBe(2.5);
  expect(quantile([10, 2, 9], 0.5)).toBe(9);
  expect(quantile([5], 0.99)).toBe(5);
  const hundred = Array.from({ length: 101 }, (_, index) => 100 - index);
  expect(quantile(hundred, 0.99)).toBe(99);
});

test("a round that was slow for every variant does not change the ratio", () => {
  const measurements = { ours: eventsPerSecond(100, 50, 220), textbook: eventsPerSecond(50, 25, 100) };
  expect(compare(measurements, { figure: "eventsPerSecond", of: "ours", to: "textbook" })).toEqual({
    figure: "eventsPerSecond",
    of: "ours",
    to: "textbook",
    median: 2,
    min: 2,
    max: 2.2,
  });
});

test("a ratio above 1 means better, also where less is better", () => {
  const measurements = { ours: [{ cpuUs: 40 }], textbook: [{ cpuUs: 60 }] };
  expect(compare(measurements, { figure: "cpuUs", of: "ours", to: "textbook" })).toMatchObject({ median: 1.5 });
});

test("a figure that the machine does not provide is not compared", async () => {
  const { signal } = new AbortController();
  const lines: string[] = [];
  const measure = async () => ({ p50Ms: 1, cpuUs: Number.NaN });
  const options = { rounds: 2, say: (line: string) => void lines.push(line), signal };
  const measurements = await runRounds(options, "load", { ours: measure, textbook: measure });
  expect(measurements["ours"]).toEqual([{ p50Ms: 1 }, { p50Ms: 1 }]);
  expect(lines[0]).toBe("load, round 1 of 2, ours: p50Ms 1.000");
  expect(compare(measurements, { figure: "cpuUs", of: "ours", to: "textbook" })).toBeUndefined();
});

function eventsPerSecond(...values: number[]): Measurement[] {
  return values.map((value) => ({ eventsPerSecond: value }));
}

function compare(measurements: Record<string, Measurement[]>, comparison: Comparison) {
  const rounds = Object.values(measurements)[0]?.length ?? 0;
  return createReport("a machine", rounds, [{ title: "", measurements, comparisons: [comparison] }]).sections[0]
    ?.ratios[0];
}
