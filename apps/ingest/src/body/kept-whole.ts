/**
 * Whether an object is sure to hold all that its text says: no key that stood there twice, and no number that was
 * rounded. `JSON.parse` shows neither. False means that it takes an exact parser to tell.
 *
 * @param object what `JSON.parse` made of the text
 */
export function isKeptWhole(text: string, object: Readonly<Record<string, unknown>>): boolean {
  return leavesNoRoom(text, object) || hasEveryString(text, object);
}

/** In characters, the least that one more field takes: `"":0,`. */
const shortestField = 5;

/**
 * For flat objects of strings, sent without white space, a sum proves it, for less than 2 % of what it costs to decode
 * and check the payload. The other proof takes ten times as long.
 */
function leavesNoRoom(text: string, object: Readonly<Record<string, unknown>>): boolean {
  // Two braces, less the comma that the last field doesn't have. No character takes less than its own place.
  let shortestText = 1;
  for (const name in object) {
    const value = object[name];
    if (typeof value === "string") shortestText += `"":"",`.length + name.length + value.length;
    else if (value === null) shortestText += `"":null,`.length + name.length;
    else return false;
  }
  return text.length - shortestText < shortestField;
}

/** A key that stands there twice is a string that the object lacks, or has once. Each has two quotation marks. */
function hasEveryString(text: string, object: object): boolean {
  const { strings, hasNumber } = takeStock(object);
  return countQuotationMarks(text) === 2 * strings && !(hasNumber && oddNumber.test(text));
}

/** An exponent, or more digits than the 15 that a double always holds. It may as well stand in a string. */
const oddNumber = /[0-9.]{16}|[0-9][eE]/;

function takeStock(object: object): { strings: number; hasNumber: boolean } {
  let strings = 0;
  let hasNumber = false;
  const containers: object[] = [object];
  for (let container = containers.pop(); container !== undefined; container = containers.pop()) {
    const values: unknown[] = Object.values(container);
    if (!Array.isArray(container)) strings += values.length;
    for (const value of values) {
      if (typeof value === "string") strings += 1;
      else if (typeof value === "number") hasNumber = true;
      else if (typeof value === "object" && value !== null) containers.push(value);
    }
  }
  return { strings, hasNumber };
}

function countQuotationMarks(text: string): number {
  let count = 0;
  for (let at = text.indexOf('"'); at !== -1; at = text.indexOf('"', at + 1)) count += 1;
  return count;
}
