import type { Guide } from "./guide.ts";
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

/** Joins what the guide and the OpenAPI document say about a field. */
export function findField(name: string, schema: Schema, { fields }: Guide): Field {
  const { description = "", examples = [], deprecated = false } = schema;
  const inGuide = fields.find((field) => field.name === name);
  const { type = "any" } = inGuide ?? {};
  // The schema's limit of a reference is that of its text before white space is removed.
  const most = /at most (\d+)/.exec(type)?.[1] ?? schema.maxLength;
  const limit = most === undefined ? "" : `up to ${Number(most).toLocaleString("en")} characters`;
  return {
    name,
    type: [type.replace(/, at most.*?(?=$| or)/, ""), limit].filter((fact) => fact !== "").join(", "),
    reading: inGuide?.reading ?? "",
    meaning: description.replace(/ Read as: .*$/, ""),
    example: examples[0],
    isRetired: deprecated,
  };
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
