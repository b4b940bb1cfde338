// @ts-check
/**
 * The form of "Try it". It sends a request and shows the answer as text, with links to what its codes mean.
 *
 * The secret is never put into an address, into any storage, into a link or into the command that is shown.
 */
import { lookupUrl, serviceUrl } from "./docs.js";

/**
 * @typedef {{ name: string, in: string, description: string, required?: boolean, example: string, schema: { enum?: string[] } }} Parameter
 * @typedef {{ examples?: Record<string, { value: Record<string, string> }> }} Content
 * @typedef {{ name: string, method: string, path: string, summary: string, parameters: Parameter[], content: Record<string, Content> }} Operation
 */

const formats = {
  "application/json": "JSON",
  "application/x-www-form-urlencoded": "Form",
  "application/x-ndjson": "NDJSON",
};
/** What lookup answers, by the segment of the path before the secret. */
const questions = ["receipt", "booking", "reconcile", "activity"];
/** The time in which the service answers, whatever happens, and some more. */
const timeLimitMs = 30_000;

const form = byId("try", HTMLFormElement);
const operationChoice = byId("operation", HTMLSelectElement);
const endpoint = byId("endpoint", HTMLElement);
const bodyFields = byId("body-fields", HTMLElement);
const exampleChoice = byId("example", HTMLSelectElement);
const typeChoice = byId("type", HTMLSelectElement);
const body = byId("body", HTMLTextAreaElement);
const parameters = byId("parameters", HTMLElement);
const secret = byId("secret", HTMLInputElement);
const dryRunField = byId("dry-run-field", HTMLElement);
const dryRun = byId("dry-run", HTMLInputElement);
const sendButton = byId("send", HTMLButtonElement);
const note = byId("note", HTMLElement);
const curl = byId("curl", HTMLElement);
const answer = byId("answer", HTMLElement);

const operations = await readOperations();
let lastEventId = "";

for (const { name, method, summary } of operations) operationChoice.add(new Option(`${summary} (${method})`, name));
operationChoice.addEventListener("change", () => {
  history.replaceState(null, "", `#${operationChoice.value}`);
  showOperation();
});
typeChoice.addEventListener("change", listExamples);
exampleChoice.addEventListener("change", fillBody);
form.addEventListener("input", showCurl);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  void send();
});
addEventListener("hashchange", chooseByAddress);
chooseByAddress();
byId("without-script", HTMLElement).hidden = true;
form.hidden = false;

/** @returns {Promise<Operation[]>} */
async function readOperations() {
  const response = await fetch(new URL("../openapi.json", import.meta.url), { referrerPolicy: "no-referrer" });
  const { paths, components } = await response.json();
  return Object.entries(paths).map(([path, item]) => {
    const { summary, requestBody } = item.post ?? item.get;
    return {
      ...{ name: path.split("/")[2] ?? "", method: item.post ? "POST" : "GET", path, summary },
      parameters: (item.parameters ?? []).map(({ $ref = "" }) => components.parameters[$ref.split("/").at(-1) ?? ""]),
      content: requestBody?.content ?? {},
    };
  });
}

function chooseByAddress() {
  const wanted = location.hash.slice(1);
  if (operations.some(({ name }) => name === wanted)) operationChoice.value = wanted;
  showOperation();
}

/** @returns {Operation} */
function chosen() {
  const operation = operations.find(({ name }) => name === operationChoice.value);
  if (operation === undefined) throw new Error("No operation is chosen.");
  return operation;
}

function showOperation() {
  const { method, path, parameters: all, content } = chosen();
  const badge = document.createElement("span");
  badge.className = `method method-${method.toLowerCase()}`;
  badge.textContent = method;
  const code = document.createElement("code");
  code.textContent = path;
  endpoint.replaceChildren(badge, code);
  bodyFields.hidden = Object.keys(content).length === 0;
  typeChoice.replaceChildren(...Object.keys(content).map((type) => new Option(formats[type] ?? type, type)));
  const asked = all.filter(
    (each) => each.name === "Idempotency-Key" || (each.in !== "header" && each.name !== "secret"),
  );
  parameters.replaceChildren(...asked.map(toField));
  dryRunField.hidden = !all.some(({ name }) => name === "X-Dry-Run");
  answer.replaceChildren();
  note.textContent = "";
  listExamples();
}

/** @param {Parameter} parameter */
function toField({ name, required = false, example, schema }) {
  const label = document.createElement("label");
  label.className = "field";
  const input = document.createElement(schema.enum ? "select" : "input");
  const choices = schema.enum === undefined || required ? (schema.enum ?? []) : ["", ...schema.enum];
  for (const choice of choices) input.append(new Option(choice, choice));
  Object.assign(input, { id: `parameter-${name}`, autocomplete: "off", spellcheck: false, required });
  input.value = firstValue(name, required ? example : "");
  input.classList.add("code");
  label.append(`${name} `, input);
  if (name === "Idempotency-Key") {
    const hint = document.createElement("small");
    hint.textContent = "Each event has its own. After an accepted event, there is a new one here.";
    label.append(hint);
  }
  return label;
}

/**
 * @param {string} name
 * @param {string} otherwise
 */
function firstValue(name, otherwise) {
  if (name === "Idempotency-Key") return newKey();
  return name === "eventId" && lastEventId !== "" ? lastEventId : otherwise;
}

function listExamples() {
  const names = Object.keys(chosen().content[typeChoice.value]?.examples ?? {});
  exampleChoice.replaceChildren(...names.map((name) => new Option(name.replaceAll("-", " "), name)));
  fillBody();
}

function fillBody() {
  const { examples = {} } = chosen().content[typeChoice.value] ?? {};
  const value = examples[exampleChoice.value]?.value ?? {};
  if (typeChoice.value === "application/x-www-form-urlencoded") body.value = new URLSearchParams(value).toString();
  else if (typeChoice.value === "application/json") body.value = JSON.stringify(value, null, 2);
  else body.value = JSON.stringify(value);
  renewKeys();
}

/** A key that an accepted event has had would make the next event look like its retry, or be reported as used again. */
function renewKeys() {
  const field = document.getElementById("parameter-Idempotency-Key");
  if (field instanceof HTMLInputElement) field.value = newKey();
  if (typeChoice.value === "application/x-ndjson")
    body.value = body.value.replaceAll(/("idempotencyKey":\s*)"[^"]*"/g, (_, start) => `${start}"${newKey()}"`);
  showCurl();
}

function newKey() {
  return `try-it/${Date.now().toString(36)}-${Math.random().toString(36).slice(2, 8)}`;
}

/** The secret is in a header, so that no address contains it. */
function prepareRequest() {
  const { name, method, path, parameters: all, content } = chosen();
  const base = questions.includes(name) ? lookupUrl : serviceUrl;
  const query = new URLSearchParams();
  let filled = path.replace("/{secret}", "");
  /** @type {Record<string, string>} */
  const headers = {};
  if (Object.keys(content).length > 0) headers["Content-Type"] = typeChoice.value;
  for (const { name: parameter, in: place } of all) {
    const field = document.getElementById(`parameter-${parameter}`);
    const value = field instanceof HTMLInputElement || field instanceof HTMLSelectElement ? field.value : "";
    if (value === "") continue;
    if (place === "path") filled = filled.replace(`{${parameter}}`, () => encodeURIComponent(value));
    else if (place === "query") query.set(parameter, value);
    else headers[parameter] = value;
  }
  if (!dryRunField.hidden && dryRun.checked) headers["X-Dry-Run"] = "true";
  const url = `${base}${filled}${query.size > 0 ? `?${query}` : ""}`;
  return { url, method, headers, ...(method === "POST" && { body: body.value }) };
}

function showCurl() {
  const { url, headers, body: sent } = prepareRequest();
  const lines = [
    `curl ${quote(url)}`,
    // In double quotes, so that the shell fills it in.
    '-H "Authorization: Bearer $BOOKING_EVENTS_SECRET"',
    ...Object.entries(headers).map(([name, value]) => `-H ${quote(`${name}: ${value}`)}`),
    ...(sent === undefined ? [] : [`--data-binary ${quote(sent)}`]),
  ];
  curl.textContent = lines.join(" \\\n  ");
}

/** @param {string} text */
function quote(text) {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

async function send() {
  const { url, ...request } = prepareRequest();
  sendButton.disabled = true;
  note.textContent = "Sending…";
  try {
    const response = await fetch(url, {
      ...request,
      headers: { ...request.headers, Authorization: `Bearer ${secret.value}` },
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(timeLimitMs),
    });
    const text = await response.text();
    note.textContent = "";
    showAnswer(response, text);
    if (response.ok) followUp(text, request.headers["X-Dry-Run"] === "true");
  } catch {
    // For example, a header cannot have every character of what was typed. The error's message would repeat it.
    note.textContent =
      "No answer. The request may have arrived even so: with the same key, it is safe to send it again.";
    answer.replaceChildren();
  } finally {
    sendButton.disabled = false;
  }
}

/**
 * What an accepted event is followed by: another key, and the question what became of it.
 *
 * @param {string} text
 * @param {boolean} isDryRun
 */
function followUp(text, isDryRun) {
  const accepted = /"eventId":\s*"([0-9a-f-]{36})"/.exec(text)?.[1];
  if (isDryRun || accepted === undefined || questions.includes(chosen().name)) return;
  lastEventId = accepted;
  renewKeys();
  note.textContent = "Accepted. The next event has a new Idempotency-Key.";
  const button = document.createElement("button");
  Object.assign(button, { type: "button", className: "button", textContent: "Ask what became of it" });
  button.addEventListener("click", () => {
    location.hash = "receipt";
  });
  answer.append(button);
}

/**
 * @param {Response} response
 * @param {string} text
 */
function showAnswer(response, text) {
  const { status, headers } = response;
  const block = document.createElement("figure");
  block.className = "code answer";
  const title = document.createElement("figcaption");
  const badge = link(`../docs/reference#status-${status}`, `Status ${status}`);
  badge.className = `status status-${String(status)[0]}`;
  title.append(badge);
  const known = document.createElement("pre");
  known.tabIndex = 0;
  known.textContent = Array.from(headers, ([name, value]) => `${name}: ${value}`).join("\n");
  const shown = document.createElement("pre");
  shown.tabIndex = 0;
  for (const document of toDocuments(text)) {
    if (typeof document === "string") shown.append(document);
    else renderJson(shown, document.value, "", document.isAlone ? "\n" : null);
    shown.append("\n");
  }
  block.append(title, shown);
  const more = document.createElement("details");
  const summary = document.createElement("summary");
  summary.textContent = "Headers";
  more.append(summary, known);
  answer.replaceChildren(block, more);
}

/** A body is JSON, or a line of JSON for each of several, or something else from a proxy. */
function toDocuments(text) {
  try {
    return [{ value: JSON.parse(text), isAlone: true }];
  } catch {
    const lines = text.split("\n").filter((line) => line !== "");
    return lines.map((line) => {
      try {
        return { value: JSON.parse(line), isAlone: false };
      } catch {
        return line;
      }
    });
  }
}

/**
 * @param {Node} target
 * @param {unknown} value
 * @param {string} place the list that it is in, which says what a code in it belongs to
 * @param {string | null} newLine with the indentation; null: all in one line
 */
function renderJson(target, value, place, newLine) {
  if (typeof value !== "object" || value === null) {
    const kind = typeof value === "string" ? "hljs-string" : "hljs-number";
    target.appendChild(coloured(kind, JSON.stringify(value)));
    return;
  }
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const inner = newLine === null ? null : `${newLine}  `;
  const isFlat = isList && entries.every(([, each]) => typeof each !== "object");
  target.appendChild(document.createTextNode(isList ? "[" : "{"));
  entries.forEach(([name, member], index) => {
    const gap = isFlat || inner === null ? (index === 0 ? "" : " ") : inner;
    target.appendChild(document.createTextNode(`${index === 0 ? "" : ","}${gap}`));
    if (!isList) target.appendChild(coloured("hljs-attr", `${JSON.stringify(name)}: `));
    if (isCode(name, member, value)) target.appendChild(link(addressOfCode(place, member), JSON.stringify(member)));
    else renderJson(target, member, isList ? place : name, inner);
  });
  const end = isFlat || newLine === null || entries.length === 0 ? "" : newLine;
  target.appendChild(document.createTextNode(`${end}${isList ? "]" : "}"}`));
}

/** The code of a receipt that failed is for us, and explained nowhere. */
function isCode(name, member, { message }) {
  return name === "code" && typeof member === "string" && message !== undefined;
}

/**
 * @param {string} place
 * @param {string} code
 */
function addressOfCode(place, code) {
  if (place === "violationList") return `../docs#violation-${code}`;
  return place === "warnings" ? `../docs#warning-${code}` : `../docs/reference#code-${code}`;
}

/**
 * @param {string} kind
 * @param {string} text
 */
function coloured(kind, text) {
  const span = document.createElement("span");
  span.className = kind;
  span.textContent = text;
  return span;
}

/**
 * @param {string} href
 * @param {string} text
 */
function link(href, text) {
  const anchor = document.createElement("a");
  anchor.href = href;
  anchor.textContent = text;
  return anchor;
}

/**
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
function byId(id, kind) {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`The page has no ${id}.`);
  return element;
}
