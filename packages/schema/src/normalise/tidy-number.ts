import metadata from "libphonenumber-js/min/metadata";

interface NumberingPlan {
  /** Bit n is set if a national number may have n digits. */
  lengths: number;
  /** What people dial before a national number, and some write behind the calling code although it does not belong there. */
  prefix: RegExp | undefined;
}

/**
 * Returns whether the text is already what the library would make of it: `+`, a calling code, and as many digits as a
 * number of the country has, without a prefix in between. Most numbers are, and the library takes a hundred times as long.
 */
export function isTidyNumber(sent: string): boolean {
  const { length } = sent;
  if (length > maxLength || sent.charCodeAt(0) !== plus) return false;
  for (let index = 1; index < length; index += 1) if (!isDigit(sent.charCodeAt(index))) return false;
  plans ??= readPlans();
  let code = 0;
  for (let start = 2; start <= 4; start += 1) {
    code = code * 10 + sent.charCodeAt(start - 1) - zero;
    const plan = plans[code];
    if (plan === undefined) continue;
    // A zero belongs to the number in few countries. The library knows which.
    const isPossible = ((plan.lengths >> (length - start)) & 1) === 1 && sent.charCodeAt(start) !== zero;
    // A pattern may match an empty prefix.
    return isPossible && !plan.prefix?.exec(sent.slice(start))?.[0];
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

/** By calling code: none begins like another one. */
let plans: readonly (NumberingPlan | undefined)[] | undefined;

function readPlans(): (NumberingPlan | undefined)[] {
  const byCode: (NumberingPlan | undefined)[] = Array.from({ length: 1_000 });
  for (const [code, countries] of Object.entries(metadata.country_calling_codes)) {
    const shared = countries.map((country) => toNumberingPlan(metadata.countries[country] ?? []));
    // Of countries that share a code, the first has the prefix of all, and some have fewer lengths.
    const lengths = shared.reduce((bits, plan) => bits & plan.lengths, ~0);
    byCode[Number(code)] = { lengths, prefix: shared[0]?.prefix };
  }
  return byCode;
}

/** The places are those of the library's own class `Metadata`, in version 4 of the format. */
function toNumberingPlan(plan: readonly unknown[]): NumberingPlan {
  const { 3: lengths = [], 5: nationalPrefix, 7: prefixForParsing } = plan as NumberingPlanFields;
  const prefix = prefixForParsing || nationalPrefix;
  return {
    lengths: lengths.reduce((bits, length) => bits | (1 << length), 0),
    // A zero needs no pattern.
    prefix: prefix && prefix !== "0" ? new RegExp(`^(?:${prefix})`) : undefined,
  };
}

interface NumberingPlanFields {
  3?: readonly number[];
  5?: string | 0;
  7?: string | 0;
}
