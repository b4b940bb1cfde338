import { STATUS_CODES } from "node:http";
import { type Chapter, type Entry, type Found, renderHeading, renderRow } from "./chapter.ts";
import { renderAnswer } from "./code.ts";
import { type Html, html } from "./html.ts";
import { describeType, listCodes, type OpenApi, type Response, type Schema } from "./openapi.ts";
import { renderCodes } from "./reference-codes.ts";
import { findField, renderFieldTable } from "./reference-fields.ts";
import { listOperations, renderOperation } from "./reference-operations.ts";
import type { Sources } from "./sources.ts";

interface Part {
  id: string;
  title: Html | string;
  body: Html;
  below: Entry[];
  found: Found[];
}

/** Renders the reference as a page, from the OpenAPI document. */
export function renderReference(sources: Sources): Chapter {
  const { openApi } = sources;
  const parts = [
    describeOperations(sources),
    describeFields(openApi),
    describeParameters(openApi),
    describeStatuses(openApi),
    describeCodesInBodies(openApi),
    describeHeaders(openApi),
    describeBodies(openApi),
  ];
  return {
    body: html`<section class="part depth-1">
<h1>Reference</h1>
<p class="lead">Every request, field, status and code. The <a href="../docs">guide</a> says how they belong together.</p>
</section>
${parts.map(({ body }) => body)}`,
    contents: parts.map(({ id, title, below }) => ({ id, title: html`${title}`, below })),
    found: parts.flatMap(({ id, title, found }) => [
      [typeof title === "string" ? title : "", "Reference", address(id), ""] satisfies Found,
      ...found,
    ]),
  };
}

function address(id: string): string {
  return `docs/reference#${id}`;
}

function renderPart(id: string, title: string, ...content: Html[]): Html {
  return html`<section id="${id}" class="part depth-2">\n${renderHeading(2, id, title)}${content}</section>\n`;
}

function describeOperations(sources: Sources): Part {
  const operations = listOperations(sources.openApi);
  const placed = new Set(
    Object.values(sources.openApi.components.responses).flatMap((each) => listCodes(each).map(([code]) => code)),
  );
  const id = "requests";
  const title = "Requests";
  return {
    id,
    title,
    body: html`${renderPart(id, title)}${operations.map((each) => renderOperation(each, sources, placed))}`,
    below: operations.map(({ method, operation: { operationId, summary } }) => ({
      id: operationId,
      title: html`${summary} <span class="method method-${method.toLowerCase()}">${method}</span>`,
      below: [],
    })),
    found: operations.map(
      ({ method, path, operation }): Found => [
        operation.summary,
        `${method} ${path}`,
        address(operation.operationId),
        operation.description,
      ],
    ),
  };
}

function describeFields({ components }: OpenApi): Part {
  const id = "fields";
  const title = "Fields of a booking";
  const schema = components.schemas["BookingInput"];
  const fields = Object.entries(schema?.properties ?? {}).map(([name, field]) => findField(name, field));
  return {
    id,
    title,
    body: renderPart(id, title, renderFieldTable(fields)),
    below: [],
    found: fields.map(({ name, meaning }): Found => [name, "Field", address(`field-${name}`), meaning]),
  };
}

function describeParameters({ components }: OpenApi): Part {
  const rows = Object.values(components.parameters).map(({ name, in: place, required, ...parameter }) => ({
    name,
    anchor: `parameter-${name}`,
    type: `${describeType(parameter.schema)}, in the ${place}${required ? ", required" : ""}`,
    meaning: parameter.description,
    example: parameter.example,
  }));
  return describeNames("parameters", "Parameters", "Parameter", rows);
}

function describeHeaders({ components }: OpenApi): Part {
  const rows = Object.entries(components.headers).map(([name, { schema, description, example }]) => ({
    name,
    anchor: `header-${name}`,
    type: describeType(schema),
    meaning: description,
    example,
  }));
  return describeNames("answer-headers", "Headers of answers", "Header", rows);
}

interface Named {
  name: string;
  anchor: string;
  type: string;
  meaning: string;
  example: string | undefined;
}

function describeNames(id: string, title: string, kind: string, rows: Named[]): Part {
  const table = renderNames(kind, rows);
  return {
    id,
    title,
    below: [],
    body: renderPart(id, title, table),
    found: rows.map(({ name, anchor, meaning }): Found => [name, kind, address(anchor), meaning]),
  };
}

function renderNames(kind: string, rows: Named[]): Html {
  const lines = rows.map(
    ({ name, anchor, type, meaning, example }) => html`<tr id="${anchor}">
<th scope="row"><a class="anchor" href="#${anchor}"><code>${name}</code></a><span class="type">${type}</span></th>
<td>${meaning}</td>
<td data-label="Example">${example === undefined ? "" : html`<code>${example}</code>`}</td>
</tr>
`,
  );
  return html`<div class="table names"><table>
<thead><tr><th scope="col">${kind}</th><th scope="col">Meaning</th><th scope="col">Example</th></tr></thead>
<tbody>
${lines}</tbody>
</table></div>
`;
}

function describeStatuses({ components }: OpenApi): Part {
  const id = "statuses";
  const title = "Statuses and codes";
  const statuses = Object.entries(components.responses);
  return {
    id,
    title,
    body: html`${renderPart(id, title)}${statuses.map(([status, response]) => renderStatus(status, response))}`,
    below: statuses.map(([status]) => ({
      id: `status-${status}`,
      title: html`<span class="status status-${status[0] ?? ""}">${status}</span> ${statusName(status)}`,
      below: [],
    })),
    found: statuses.flatMap(([status, response]): Found[] => [
      [status, "Status", address(`status-${status}`), response.description],
      ...listCodes(response).map(
        ([code, { value }]): Found => [code, `Code, status ${status}`, address(`code-${code}`), value.message ?? ""],
      ),
    ]),
  };
}

function statusName(status: string): string {
  return STATUS_CODES[status] ?? "";
}

function renderStatus(status: string, response: Response): Html {
  const { description, headers, content } = response;
  const { examples = {} } = content["application/json"] ?? {};
  const codes = listCodes(response);
  // The bodies of refusals differ only by what the codes say.
  const shown = Object.values(examples).slice(0, codes.length === 0 ? undefined : 1);
  const id = `status-${status}`;
  const prose = [
    html`<p>${description}</p>\n`,
    codes.length === 0 ? html`` : renderCodes(codes, (code) => ({ id: `code-${code}` })),
    html`<p class="small soft">Headers: ${Object.keys(headers).map(
      (name, index) => html`${index === 0 ? "" : ", "}<a href="#header-${name}">${name}</a>`,
    )}</p>\n`,
  ];
  const code = shown.map(({ value }) => renderAnswer("Body", JSON.stringify(value)));
  return html`<section id="${id}" class="part depth-3">
${renderHeading(3, id, html`<span class="status status-${status[0] ?? ""}">${status}</span> ${statusName(status)}`)}${renderRow(prose, code)}</section>
`;
}

/** What these mean stands in the guide's tables. */
function describeCodesInBodies({ components }: OpenApi): Part {
  const id = "codes-of-fields";
  const title = "Codes of violations and warnings";
  const list = (schema: string, prefix: string) =>
    html`<p class="chips">${(components.schemas[schema]?.properties?.["code"]?.enum ?? []).map(
      (code) => html`<a href="../docs#${prefix}-${code}"><code>${code}</code></a> `,
    )}</p>\n`;
  return {
    id,
    title,
    below: [],
    found: [],
    body: renderPart(
      id,
      title,
      html`<div class="prose"><p>A 422 lists <a href="../docs#violations">violations</a>. Each leads to what to send instead.</p>
${list("Violation", "violation")}<p>A 200 may list <a href="../docs#warnings">warnings</a>.</p>
${list("Warning", "warning")}</div>\n`,
    ),
  };
}

const notBodies = /^Booking(Input|Reference)/;

function describeBodies({ components }: OpenApi): Part {
  const id = "bodies";
  const title = "Bodies of answers";
  const schemas = Object.entries(components.schemas).filter(([name]) => !notBodies.test(name));
  return {
    id,
    title,
    body: html`${renderPart(id, title)}${schemas.map(([name, schema]) => renderBody(name, schema))}`,
    below: schemas.map(([name]) => ({ id: `body-${name}`, title: html`${name}`, below: [] })),
    found: schemas.map(([name, { description = "" }]): Found => [name, "Body", address(`body-${name}`), description]),
  };
}

function renderBody(name: string, schema: Schema): Html {
  const id = `body-${name}`;
  const forms = schema.oneOf ?? [schema];
  const content = forms.map((form) => {
    const said =
      form === schema ? html`` : html`<p><strong>${form.title ?? ""}</strong>: ${form.description ?? ""}</p>\n`;
    return html`${said}${renderMembers(form)}`;
  });
  return html`<section id="${id}" class="part depth-3">
${renderHeading(3, id, name)}<div class="prose"><p>${schema.description ?? ""}</p>
${content}</div>
</section>
`;
}

function renderMembers({ properties = {}, required = [] }: Schema): Html {
  const members = Object.entries(properties).map(([name, member]) => {
    const facts = `${describeType(member)}${required.includes(name) ? "" : ", optional"}`;
    return html`<dt><code>${name}</code> <span class="type">${facts}</span></dt><dd>${member.description ?? ""}</dd>\n`;
  });
  return html`<dl class="members">\n${members}</dl>\n`;
}
