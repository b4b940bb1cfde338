import metadata from "libphonenumber-js/min/metadata";

interface NumberingPlan {
  /** Bit n is set if a national number may have n digits. */
  lengths: number;
  /** What people dial before a national number, and some write behind the calling code although it does not belong there. */
  prefix: RegExp | undefined;
}

/**
 * Returns whether the text is already what the library would make of it: `+`, a calling code, and as many digits as a
 * number of the country has, without a prefix in between. Most numbers are, and the library takes fifty times as long.
 */
export function isTidyNumber(sent: string): boolean {
  if (sent.length > maxLength || sent.charCodeAt(0) !== plus) return false;
  for (let index = 1; index < sent.length; index += 1) if (!isDigit(sent.charCodeAt(index))) return false;
  plans ??= readPlans();
  for (let end = 2; end <= 4; end += 1) {
    const plan = plans.get(sent.slice(1, end));
    if (plan === undefined) continue;
    const hasLength = ((plan.lengths >> (sent.length - end)) & 1) === 1;
    // A zero belongs to the number in few countries. The library knows which.
    if (!hasLength || sent.charCodeAt(end) === zero) return false;
    // A pattern may match an empty prefix.
    return plan.prefix === undefined || !plan.prefix.exec(sent.slice(end))?.[0];
  }
  return false;
}

/** E.164 allows 15 digits. */
const maxLength = 16;
const plus = 0x2b;
const zero = 0x30;

function isDigit(code: number): boolean {
  return code >= zero && code <= 0x39;
}

let plans: ReadonlyMap<string, NumberingPlan> | undefined;

/** By calling code: none begins like another one. */
function readPlans(): ReadonlyMap<string, NumberingPlan> {
  return new Map(
    Object.entries(metadata.country_calling_codes).map(([code, countries]) => {
      const plans = countries.map((country) => toNumberingPlan(metadata.countries[country] ?? []));
      // Of countries that share a code, the first has the prefix of all, and some have fewer lengths.
      return [code, { prefix: plans[0]?.prefix, lengths: plans.reduce((bits, plan) => bits & plan.lengths, ~0) }];
    }),
  );
}

/** The places are those of the library's own class `Metadata`, in version 4 of the format. */
function toNumberingPlan(plan: readonly unknown[]): NumberingPlan {
  const { 3: lengths = [], 5: nationalPrefix, 7: prefixForParsing } = plan as NumberingPlanFields;
  const prefix = prefixForParsing || nationalPrefix;
  return {
    lengths: lengths.reduce((bits, length) => bits | (1 << length), 0),
    prefix: prefix ? new RegExp(`^(?:${prefix})`) : undefined,
  };
}

interface NumberingPlanFields {
  3?: readonly number[];
  5?: string | 0;
  7?: string | 0;
}
