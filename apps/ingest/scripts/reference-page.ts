import { type Html, html } from "./html.ts";
import { type Guide, renderCode, renderGuide } from "./render-guide.ts";

/** What the page uses of the OpenAPI document. */
export interface OpenApi {
  info: { title: string; version: string; description: string };
  paths: Record<string, { post?: Operation; get?: Operation }>;
  components: {
    parameters: Record<string, Parameter>;
    headers: Record<string, Described>;
    responses: Record<string, Response>;
    schemas: Record<string, Schema>;
  };
}

interface Described {
  description: string;
  schema: Schema;
  example: string;
}

interface Parameter extends Described {
  name: string;
  in: string;
  required?: boolean;
}

interface Operation {
  operationId: string;
  summary: string;
  description: string;
  requestBody?: Body;
  responses: Record<string, Response | { $ref: string }>;
}

interface Body {
  description: string;
  content: Record<string, { examples: Record<string, Example> }>;
}

interface Example {
  summary?: string;
  value: { message?: string };
}

interface Response extends Body {
  headers: object;
}

interface Schema {
  $ref?: string;
  title?: string;
  description?: string;
  type?: string;
  format?: string;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  const?: unknown;
  enum?: string[];
  not?: object;
  anyOf?: Schema[];
  oneOf?: Schema[];
  items?: Schema;
  examples?: string[];
  required?: string[];
  properties?: Record<string, Schema>;
}

/** Renders the guide and the reference as one page, which is complete without JavaScript except for the try-out. */
export function buildReferencePage(document: OpenApi, guideMarkdown: string): string {
  const { info, components } = document;
  const guide = renderGuide(guideMarkdown, renderFields(components.schemas["BookingInput"]));
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<title>${info.title}: guide and reference</title>
<link rel="icon" href="docs/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="docs/style.css">
<script type="module" src="docs/try-out.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<h1>${info.title}</h1>
<p>Guide and reference for partners. Also as <a href="openapi.json">OpenAPI 3.1</a>. Version ${info.version}.</p>
</header>
${renderContents(guide)}
<main id="content">
${guide.body}
${tryOut}
<h2 id="reference">Reference</h2>
<h3 id="requests">Requests</h3>
${Object.entries(document.paths).flatMap(([path, { get, post }]) => [
  ...(post === undefined ? [] : [renderOperation("POST", path, post)]),
  ...(get === undefined ? [] : [renderOperation("GET", path, get)]),
])}
<h3 id="parameters">Parameters</h3>
<dl>
${Object.values(components.parameters).map(renderParameter)}
</dl>
<h3 id="statuses">Statuses and codes</h3>
${Object.entries(components.responses).map(([status, response]) => renderResponse(status, response))}
<h3 id="answer-headers">Headers of answers</h3>
<dl>
${Object.entries(components.headers).map(([name, header]) => renderMember(name, header.schema, header))}
</dl>
<h3 id="bodies">Bodies</h3>
${bodies.map((name) => renderBody(name, components.schemas[name]))}
</main>
</body>
</html>
`.text;
}

const bodies = [
  ...["Accepted", "DryRunPassed", "Warning", "Refusal", "InvalidData", "Violation"],
  ...["Receipt", "BookingStatus", "ListedReference", "Difference", "ReconciliationSummary"],
];

const referenceSections = [
  { id: "try-it", title: "Try it" },
  { id: "reference", title: "Reference" },
  { id: "parameters", title: "Parameters" },
  { id: "statuses", title: "Statuses and codes" },
  { id: "answer-headers", title: "Headers of answers" },
  { id: "bodies", title: "Bodies" },
];

function renderContents({ sections }: Guide): Html {
  const links = [...sections, ...referenceSections].map(
    ({ id, title }) => html`<li><a href="#${id}">${title}</a></li>\n`,
  );
  return html`<nav aria-label="Contents">
<ul>
${links}</ul>
</nav>`;
}

/** Without JavaScript the form would do nothing, so the script shows it. No field has a name that could be sent. */
const tryOut = html`<h2 id="try-it">Try it</h2>
<p id="without-script">The form needs JavaScript. The <a href="#in-one-minute">command above</a> does the same.</p>
<form id="try-out" autocomplete="off" hidden>
<p>Sends a request from your browser to this host. Your secret goes nowhere else and is not stored.</p>
<p class="pair">
<label>Operation <select id="kind"></select></label>
<label>Body <select id="type"></select></label>
<label>Example <select id="example"></select></label>
</p>
<p><label>Secret <input id="secret" type="password" autocomplete="off" spellcheck="false" required></label></p>
<p><label>Idempotency-Key <input id="key" autocomplete="off" spellcheck="false"></label></p>
<p><label>Payload <textarea id="payload" rows="12" spellcheck="false"></textarea></label></p>
<p><label class="check"><input id="dry-run" type="checkbox" checked> Dry run: check everything, store nothing</label></p>
<p><button>Send</button></p>
<div id="answer" role="status"></div>
</form>`;

function renderOperation(method: string, path: string, operation: Operation): Html {
  const { operationId, summary, description, requestBody, responses } = operation;
  const own = Object.entries(responses).filter((entry): entry is [string, Response] => !("$ref" in entry[1]));
  return html`<h4 id="${operationId}">${summary}</h4>
<p><code>${method} ${path}</code></p>
<p>${description} ${requestBody?.description ?? ""}</p>
${renderBodies(requestBody)}${own.map(([status, response]) => renderOwnResponse(status, response))}`;
}

function renderBodies(body: Body | undefined): Html[] {
  return Object.entries(body?.content ?? {}).map(([type, { examples }]) => renderExamples(type, examples));
}

/** An answer that is not among those that all operations share. */
function renderOwnResponse(status: string, response: Response): Html {
  const reasons = findReasons(response);
  return html`<p><strong>${status}</strong>: ${response.description}</p>
${reasons.length === 0 ? renderBodies(response) : renderReasons(reasons)}`;
}

function renderExamples(type: string, examples: Record<string, Example>): Html {
  const each = Object.values(examples).map(
    ({ summary, value }) =>
      html`${summary === undefined ? html`` : html`<p>${summary}</p>\n`}${renderCode(encodeExample(type, value))}`,
  );
  return html`<details><summary>Examples as <code>${type}</code></summary>\n${each}</details>\n`;
}

function encodeExample(type: string, value: object): string {
  if (type === "application/json") return JSON.stringify(value, null, 2);
  if (type === "application/x-ndjson") return JSON.stringify(value);
  return new URLSearchParams(Object.entries(value)).toString();
}

function renderParameter({ name, in: place, required, ...parameter }: Parameter): Html {
  const where = `${place === "path" ? "in the path" : place}${required ? ", required" : ""}`;
  return renderMember(name, parameter.schema, parameter, where);
}

function renderResponse(status: string, response: Response): Html {
  const { description, headers, content } = response;
  const { examples = {} } = content["application/json"] ?? {};
  const reasons = findReasons(response);
  // The bodies of refusals differ only by what the reasons say.
  const shown = Object.values(examples).slice(0, reasons.length === 0 ? undefined : 1);
  return html`<h4 id="status-${status}">${status}</h4>
<p>${description}</p>
<p>Headers: ${joinCodes(Object.keys(headers))}.</p>
${reasons.length === 0 ? html`` : renderReasons(reasons)}
<details><summary>Example of the body</summary>${shown.map(({ value }) => renderCode(JSON.stringify(value, null, 2)))}</details>
`;
}

function findReasons({ content }: Response): [code: string, example: Example][] {
  const { examples = {} } = content["application/json"] ?? {};
  return Object.entries(examples).filter(([, { value }]) => value.message !== undefined);
}

function renderReasons(reasons: [code: string, example: Example][]): Html {
  const each = reasons.map(([code, { value }]) => html`<dt><code>${code}</code></dt><dd>${value.message ?? ""}</dd>\n`);
  return html`<dl>\n${each}</dl>`;
}

function joinCodes(names: string[]): Html[] {
  return names.map((name, index) => html`${index === 0 ? "" : ", "}<code>${name}</code>`);
}

function renderBody(name: string, schema: Schema | undefined): Html {
  return html`<h4 id="body-${name}">${name}</h4>
<p>${schema?.description ?? ""}</p>
${schema?.oneOf === undefined ? renderFields(schema) : schema.oneOf.map(renderAlternative)}`;
}

function renderAlternative(schema: Schema): Html {
  return html`<p><strong>${schema.title ?? ""}</strong>: ${schema.description ?? ""}</p>
${renderFields(schema)}`;
}

function renderFields(schema: Schema | undefined): Html {
  const members = Object.entries(schema?.properties ?? {}).map(([name, member]) => {
    const { description = "", examples: [example] = [] } = member;
    return renderMember(name, member, { description, example });
  });
  return html`<dl>\n${members}</dl>\n`;
}

function renderMember(
  name: string,
  schema: Schema,
  { description, example }: { description: string; example?: string | undefined },
  more = "",
): Html {
  const facts = [describeType(schema), more].filter((fact) => fact !== "").join(", ");
  return html`<dt><code>${name}</code> <span class="type">${facts}</span></dt>
<dd>${description}${example === undefined ? "" : html` Example: <code>${example}</code>`}${renderPattern(schema)}</dd>
`;
}

function renderPattern({ pattern, format }: Schema): Html {
  const isInWords = pattern === undefined || pattern === "\\S" || format !== undefined;
  return isInWords ? html`` : html`<details><summary>Pattern</summary>${renderCode(pattern)}</details>`;
}

function describeType(schema: Schema): string {
  const { $ref, type = "", format, minLength, maxLength, items, anyOf } = schema;
  if (schema.not !== undefined) return "retired: refused";
  if (anyOf !== undefined) return anyOf.map(describeType).join(" or ");
  if ($ref !== undefined) return $ref.replace(/^.*\//, "");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (items !== undefined) return `${type} of ${describeType(items)}`;
  const length = maxLength === undefined ? "" : ` of ${minLength} to ${maxLength.toLocaleString("en")} characters`;
  return `${type}${length}${format === undefined ? "" : `, format ${format}`}`;
}
