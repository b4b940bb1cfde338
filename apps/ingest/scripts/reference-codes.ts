import { type Html, html } from "./html.ts";
import type { Example } from "./openapi.ts";

/** @param place the id of a code that has its place here, or where it has it */
export function renderCodes(
  codes: [code: string, example: Example][],
  place: (code: string) => { id: string } | { elsewhere: string },
): Html {
  const rows = codes.map(([code, { value }]) => {
    const where = place(code);
    const row = "id" in where ? html`<tr id="${where.id}">` : html`<tr>`;
    const link =
      "id" in where
        ? html`<a class="anchor" href="#${where.id}"><code>${code}</code></a>`
        : html`<a href="#${where.elsewhere}"><code>${code}</code></a>`;
    return html`${row}<th scope="row">${link}</th><td>${value.message ?? ""}</td></tr>\n`;
  });
  return html`<div class="table codes"><table>
<thead><tr><th scope="col">Code</th><th scope="col">Message</th></tr></thead>
<tbody>
${rows}</tbody>
</table></div>
`;
}
