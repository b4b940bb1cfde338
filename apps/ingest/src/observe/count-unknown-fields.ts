import { createTallies, type Registry, type Tally } from "@booking-events/runtime";
import { bookingFields } from "@booking-events/schema";

export type CountUnknownFields = (partner: string, payload: Readonly<Record<string, unknown>>) => void;

/** Each name is a series in Prometheus for as long as the process runs. */
export const maxNamesPerPartner = 30;

const maxNameLength = 64;

const listedNames: ReadonlySet<string> = new Set(bookingFields.map(({ name }) => name));

/**
 * Counts the fields that the contract does not list, by partner and name, so that differences between what partners
 * send and the contract are seen. Partners choose the names, so their number and form are limited.
 */
export function createUnknownFieldCounter(metrics: Registry): CountUnknownFields {
  const createTally = createTallies({
    name: "ingest_unknown_fields_total",
    help: "Fields of valid payloads that the contract does not list. Further names are other, odd ones unusual.",
    labelNames: ["partner", "name"],
    registers: [metrics],
  });
  const partners = new Map<string, Map<string, Tally>>();

  function talliesOf(partner: string): Map<string, Tally> {
    const tallies = partners.get(partner) ?? new Map<string, Tally>();
    partners.set(partner, tallies);
    return tallies;
  }

  function tallyOf(partner: string, name: string): Tally {
    const tallies = talliesOf(partner);
    const known = tallies.get(name);
    if (known !== undefined) return known;
    const label = toLabel(name, tallies);
    const tally = tallies.get(label) ?? createTally(partner, label);
    tallies.set(label, tally);
    return tally;
  }

  return (partner, payload) => {
    for (const name in payload) {
      if (!listedNames.has(name)) tallyOf(partner, name).count += 1;
    }
  };
}

function toLabel(name: string, tallies: ReadonlyMap<string, Tally>): string {
  if (!looksLikeField(name)) return "unusual";
  return tallies.size < maxNamesPerPartner ? name : "other";
}

/** Any other name may be data: a person's full name, or with three digits a telephone number, a date or an id. */
function looksLikeField(name: string): boolean {
  return name.length <= maxNameLength && /^[A-Za-z]\w*$/.test(name) && !/\d\D*\d\D*\d/.test(name);
}
