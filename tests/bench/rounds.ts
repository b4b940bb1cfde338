import type { Bench, Measurement } from "./scenario.ts";

/**
 * Measures the variants in turn, A B C A B C …, so that a change of the machine's speed affects all of them.
 *
 * @returns by variant, without figures that this machine can't provide
 */
export async function runRounds(
  { rounds, say, signal }: Pick<Bench, "rounds" | "say" | "signal">,
  title: string,
  variants: Record<string, () => Promise<Measurement>>,
): Promise<Record<string, Measurement[]>> {
  const measurements: Record<string, Measurement[]> = {};
  for (let round = 1; round <= rounds; round += 1) {
    for (const [name, measure] of Object.entries(variants)) {
      signal.throwIfAborted();
      const measurement = withoutUnknown(await measure());
      measurements[name] = [...(measurements[name] ?? []), measurement];
      const figures = Object.entries(measurement).map(([figure, value]) => `${figure} ${value.toPrecision(4)}`);
      say(`${title}, round ${round} of ${rounds}, ${name}: ${figures.join(", ")}`);
    }
  }
  return measurements;
}

function withoutUnknown(measurement: Measurement): Measurement {
  return Object.fromEntries(Object.entries(measurement).filter(([, value]) => !Number.isNaN(value)));
}
