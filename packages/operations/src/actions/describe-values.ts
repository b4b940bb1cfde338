/** Tells the arguments of an action, or what it did, such as: partner acme, kinds (create, update) */
export function describeValues(values: object): string {
  return Object.entries(values)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => (Array.isArray(values) ? describeValue(value) : `${name} ${describeValue(value)}`))
    .join(", ");
}

function describeValue(value: unknown): string {
  return typeof value === "object" && value !== null ? `(${describeValues(value)})` : String(value);
}
