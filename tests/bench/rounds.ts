import type { Bench, Measurement } from "./scenario.ts";

/**
 * Measures the contestants in turn, A B C A B C …, so that what changes on the machine in the course of a run changes
 * for all of them.
 */
export async function runRounds<Name extends string>(
  { rounds, say, signal }: Pick<Bench, "rounds" | "say" | "signal">,
  title: string,
  contestants: Record<Name, () => Promise<Measurement>>,
): Promise<Record<Name, Measurement[]>> {
  const names = Object.keys(contestants) as Name[];
  const measurements = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<Name, Measurement[]>;
  for (let round = 1; round <= rounds; round += 1) {
    for (const name of names) {
      signal.throwIfAborted();
      const measurement = await contestants[name]();
      measurements[name].push(measurement);
      say(`${title}, round ${round} of ${rounds}, ${name}: ${describe(measurement)}`);
    }
  }
  return measurements;
}

function describe(measurement: Measurement): string {
  const parts = Object.entries(measurement).filter(([, value]) => value !== undefined);
  return parts.map(([figure, value]) => `${figure} ${Number(value).toPrecision(4)}`).join(", ");
}
