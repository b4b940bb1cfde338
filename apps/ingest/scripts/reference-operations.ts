import { renderHeading, renderRow } from "./chapter.ts";
import { renderAnswer, renderTabs } from "./code.ts";
import { type Html, html } from "./html.ts";
import { type Example, listCodes, type OpenApi, type Operation, type Response } from "./openapi.ts";
import { renderCodes } from "./reference-codes.ts";
import type { Sources } from "./sources.ts";

interface PlacedOperation {
  method: "GET" | "POST";
  path: string;
  operation: Operation;
  parameters: string[];
}

export function listOperations({ paths, components }: OpenApi): PlacedOperation[] {
  return Object.entries(paths).flatMap(([path, { get, post, parameters: references = [] }]) => {
    const parameters = references.map(({ $ref }) => components.parameters[$ref.replace(/^.*\//, "")]?.name ?? "");
    return [
      ...(post === undefined ? [] : [{ method: "POST" as const, path, operation: post, parameters }]),
      ...(get === undefined ? [] : [{ method: "GET" as const, path, operation: get, parameters }]),
    ];
  });
}

/** @param placed the codes that have their place already; those that get one here are added */
export function renderOperation(each: PlacedOperation, { samples }: Sources, placed: Set<string>): Html {
  const { method, path, operation, parameters } = each;
  const { operationId, summary, description, requestBody, responses } = operation;
  const name = path.split("/")[2] ?? "";
  const sample = samples.get(name) ?? samples.get(name === "create" ? "send" : name);
  const own = Object.entries(responses).filter((entry): entry is [string, Response] => !("$ref" in entry[1]));
  const prose = [
    html`<p class="endpoint"><span class="method method-${method.toLowerCase()}">${method}</span> <code>${path}</code><a href="try-it#${name}">Try it</a></p>
<p>${description}</p>
${requestBody === undefined ? html`` : html`<p>${requestBody.description}</p>\n`}`,
    renderLinks(
      "Parameters",
      parameters.map((parameter) => ({ href: `#parameter-${parameter}`, text: parameter })),
    ),
    renderLinks(
      "Answers",
      Object.keys(responses).map((status) => ({ href: `#status-${status}`, text: status })),
    ),
    ...own.map(([status, response]) => renderOwnAnswer(status, response, placed)),
  ];
  const code = [
    ...(sample === undefined ? [] : [renderTabs(`operation-${name}`, summary, sample)]),
    ...renderExamples("Body", requestBody?.content ?? {}),
    ...own.flatMap(([status, { content }]) => (status === "200" ? renderExamples("Answer", content) : [])),
  ];
  return html`<section id="${operationId}" class="part depth-3">
${renderHeading(3, operationId, summary)}${renderRow(prose, code)}</section>
`;
}

function renderLinks(title: string, links: { href: string; text: string }[]): Html {
  return html`<p class="chips"><span class="chips-title">${title}</span> ${links.map(
    ({ href, text }) => html`<a href="${href}"><code>${text}</code></a> `,
  )}</p>
`;
}

/** An answer that is not among those that all operations share. */
function renderOwnAnswer(status: string, response: Response, placed: Set<string>): Html {
  const codes = listCodes(response);
  const said = html`<p><strong>${status}</strong>: ${response.description}</p>\n`;
  if (codes.length === 0) return said;
  return html`${said}${renderCodes(codes, (code) => {
    const id = `code-${code}`;
    if (placed.has(code)) return { elsewhere: id };
    placed.add(code);
    return { id };
  })}`;
}

/** The first example of the first type is shown, the others unfold. */
function renderExamples(title: string, content: Record<string, { examples?: Record<string, Example> }>): Html[] {
  const all = Object.entries(content).flatMap(([type, { examples = {} }]) =>
    Object.entries(examples).map(([name, { value }]) => ({
      title: `${title}: ${name.replaceAll("-", " ")}`,
      type,
      text: encodeExample(type, value),
    })),
  );
  const [first, ...others] = all.map((example) => ({ ...example, code: renderExample(example) }));
  if (first === undefined) return [];
  const folded = others.map(({ code }) => code);
  const summary = `${others.length} more ${others.length === 1 ? "example" : "examples"}`;
  return [
    first.code,
    ...(others.length === 0 ? [] : [html`<details><summary>${summary}</summary>\n${folded}</details>\n`]),
  ];
}

function renderExample({ title, type, text }: { title: string; type: string; text: string }): Html {
  if (type === "application/x-www-form-urlencoded") return renderAnswer(`${title} (form)`, text);
  return renderAnswer(title, text);
}

function encodeExample(type: string, value: object): string {
  if (type !== "application/x-www-form-urlencoded") return JSON.stringify(value);
  return new URLSearchParams(Object.entries(value)).toString();
}
