import { bookingFields } from "@booking-events/schema";
import { type Html, html } from "./html.ts";
import type { Schema } from "./openapi.ts";

export interface Field {
  name: string;
  type: string;
  reading: string;
  meaning: string;
  example: string | undefined;
  isRetired: boolean;
}

/** Joins what the contract and the OpenAPI document say about a field. */
export function findField(name: string, { description = "", examples = [], deprecated = false }: Schema): Field {
  const [meaning = "", reading = ""] = description.split(" Read as: ");
  return {
    name,
    type: describeField(name),
    reading: reading.replace(/\.$/, ""),
    meaning,
    example: examples[0],
    isRetired: deprecated,
  };
}

function describeField(name: string): string {
  const field = bookingFields.find((each) => each.name === name);
  if (field === undefined) return "";
  const type = { date: "date", email: "e-mail address" }[field.type as string] ?? "text";
  // The schema's limit of a reference is that of its text before white space is removed.
  const limit = field.acceptsAnything ? "" : `, up to ${field.maxLength.toLocaleString("en")} characters`;
  return `${type}${field.nullable ? " or null" : ""}${limit}`;
}

export function renderFieldTable(fields: Field[]): Html {
  return html`<div class="table fields"><table>
<thead><tr><th scope="col">Field</th><th scope="col">Meaning</th><th scope="col">Read as</th><th scope="col">Example</th></tr></thead>
<tbody>
${fields.map(renderField)}</tbody>
</table></div>
`;
}

function renderField({ name, type, reading, meaning, example, isRetired }: Field): Html {
  const id = `field-${name}`;
  return html`<tr id="${id}">
<th scope="row"><a class="anchor" href="#${id}"><code>${name}</code></a><span class="type">${isRetired ? "retired" : type}</span></th>
<td>${meaning}</td>
<td data-label="Read as">${reading === "" && !isRetired ? "as sent" : reading}</td>
<td data-label="Example">${example === undefined ? "" : html`<code>${example}</code>`}</td>
</tr>
`;
}
