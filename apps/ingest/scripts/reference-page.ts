import { type Html, html } from "./html.ts";
import { type Guide, renderCode, renderGuide } from "./render-guide.ts";

/** What the page uses of the OpenAPI document. */
export interface OpenApi {
  info: { title: string; version: string; description: string };
  paths: Record<string, { post: Operation }>;
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
  requestBody: { description: string; content: Record<string, { examples: Record<string, Example> }> };
}

interface Example {
  summary?: string;
  value: object;
}

interface Response {
  description: string;
  headers: object;
  content: Record<string, { examples: Record<string, { value: { message?: string } }> }>;
}

interface Schema {
  $ref?: string;
  description?: string;
  type?: string;
  format?: string;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  const?: unknown;
  not?: object;
  anyOf?: Schema[];
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
${Object.entries(document.paths).map(([path, { post }]) => renderOperation(path, post))}
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
<h3 id="bodies">Bodies of answers</h3>
${["Accepted", "DryRunPassed", "Refusal", "InvalidData", "Violation"].map((name) => renderBody(name, components.schemas[name]))}
</main>
</body>
</html>
`.text;
}

const referenceSections = [
  { id: "try-it", title: "Try it" },
  { id: "reference", title: "Reference" },
  { id: "parameters", title: "Parameters" },
  { id: "statuses", title: "Statuses and codes" },
  { id: "answer-headers", title: "Headers of answers" },
  { id: "bodies", title: "Bodies of answers" },
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

function renderOperation(path: string, { operationId, summary, description, requestBody }: Operation): Html {
  return html`<h4 id="${operationId}">${summary}</h4>
<p><code>POST ${path}</code></p>
<p>${description} ${requestBody.description}</p>
${Object.entries(requestBody.content).map(([type, { examples }]) => renderExamples(type, examples))}`;
}

function renderExamples(type: string, examples: Record<string, Example>): Html {
  const each = Object.values(examples).map(
    ({ summary = "", value }) => html`<p>${summary}</p>\n${renderCode(encodeExample(type, value))}`,
  );
  return html`<details><summary>Examples as <code>${type}</code></summary>\n${each}</details>\n`;
}

function encodeExample(type: string, value: object): string {
  if (type === "application/json") return JSON.stringify(value, null, 2);
  return new URLSearchParams(Object.entries(value)).toString();
}

function renderParameter({ name, in: place, required, ...parameter }: Parameter): Html {
  const where = `${place === "path" ? "in the path" : place}${required ? ", required" : ""}`;
  return renderMember(name, parameter.schema, parameter, where);
}

function renderResponse(status: string, { description, headers, content }: Response): Html {
  const { examples = {} } = content["application/json"] ?? {};
  const reasons = Object.entries(examples).filter(([, { value }]) => value.message !== undefined);
  // The bodies of refusals differ only by what the reasons say.
  const shown = Object.values(examples).slice(0, reasons.length === 0 ? undefined : 1);
  return html`<h4 id="status-${status}">${status}</h4>
<p>${description}</p>
<p>Headers: ${joinCodes(Object.keys(headers))}.</p>
${reasons.length === 0 ? html`` : renderReasons(reasons)}
<details><summary>Example of the body</summary>${shown.map(({ value }) => renderCode(JSON.stringify(value, null, 2)))}</details>
`;
}

function renderReasons(reasons: [code: string, example: { value: { message?: string } }][]): Html {
  const each = reasons.map(([code, { value }]) => html`<dt><code>${code}</code></dt><dd>${value.message ?? ""}</dd>\n`);
  return html`<dl>\n${each}</dl>`;
}

function joinCodes(names: string[]): Html[] {
  return names.map((name, index) => html`${index === 0 ? "" : ", "}<code>${name}</code>`);
}

function renderBody(name: string, schema: Schema | undefined): Html {
  return html`<h4 id="body-${name}">${name}</h4>
<p>${schema?.description ?? ""}</p>
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
  if (items !== undefined) return `${type} of ${describeType(items)}`;
  const length = maxLength === undefined ? "" : ` of ${minLength} to ${maxLength.toLocaleString("en")} characters`;
  return `${type}${length}${format === undefined ? "" : `, format ${format}`}`;
}
