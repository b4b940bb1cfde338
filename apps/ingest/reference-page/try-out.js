// @ts-check
/**
 * The form of the reference page. It sends a request to the host of the page and shows the answer as text.
 *
 * The secret has to be in the request's path. It is never put into the page's own address, into any storage, or into a
 * link, and the browser's list of requests is cleared afterwards.
 */

const contentTypes = { json: "application/json", form: "application/x-www-form-urlencoded" };

/** The time in which the service answers, whatever happens, and some more. */
const timeLimitMs = 30_000;

const form = byId("try-out", HTMLFormElement);
const kind = byId("kind", HTMLSelectElement);
const type = byId("type", HTMLSelectElement);
const example = byId("example", HTMLSelectElement);
const secret = byId("secret", HTMLInputElement);
const key = byId("key", HTMLInputElement);
const payload = byId("payload", HTMLTextAreaElement);
const dryRun = byId("dry-run", HTMLInputElement);
const answer = byId("answer", HTMLElement);
const button = /** @type {HTMLButtonElement} */ (form.querySelector("button"));

const { paths } = await (await fetch("openapi.json", { referrerPolicy: "no-referrer" })).json();

for (const [path, { post }] of Object.entries(paths)) {
  // Only events have a body in JSON. Questions cannot be tried out here.
  if (post?.requestBody.content[contentTypes.json]) kind.add(new Option(path.split("/")[2], path));
}
type.add(new Option("JSON", contentTypes.json));
type.add(new Option("Form", contentTypes.form));
for (const choice of [kind, type]) choice.addEventListener("change", listExamples);
example.addEventListener("change", fillPayload);
form.addEventListener("submit", (event) => {
  event.preventDefault();
  void send();
});
key.value = `try-out/${Date.now()}`;
listExamples();
byId("without-script", HTMLElement).hidden = true;
form.hidden = false;

function listExamples() {
  const { examples } = paths[kind.value].post.requestBody.content[type.value];
  example.replaceChildren(...Object.keys(examples).map((name) => new Option(name.replaceAll("-", " "), name)));
  fillPayload();
}

function fillPayload() {
  const { value } = paths[kind.value].post.requestBody.content[type.value].examples[example.value];
  payload.value =
    type.value === contentTypes.json ? JSON.stringify(value, null, 2) : new URLSearchParams(value).toString();
}

async function send() {
  button.disabled = true;
  answer.replaceChildren("Sending…");
  try {
    const response = await fetch(kind.value.replace("{secret}", encodeURIComponent(secret.value)).slice(1), {
      method: "POST",
      headers: {
        "Content-Type": type.value,
        ...(key.value !== "" && { "Idempotency-Key": key.value }),
        ...(dryRun.checked && { "X-Dry-Run": "true" }),
      },
      body: payload.value,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: AbortSignal.timeout(timeLimitMs),
    });
    const headers = Array.from(response.headers, ([name, value]) => `${name}: ${value}`);
    show(`Status ${response.status}`, headers.join("\n"), indent(await response.text()));
  } catch {
    // The error's message may contain the URL, and with it the secret.
    show("No answer. The request may have arrived even so: with the same key, it is safe to send it again.");
  } finally {
    performance.clearResourceTimings();
    button.disabled = false;
  }
}

/**
 * @param {string} summary
 * @param {string[]} blocks
 */
function show(summary, ...blocks) {
  const title = document.createElement("p");
  title.textContent = summary;
  const details = blocks.map((text) => {
    const block = document.createElement("pre");
    block.textContent = text;
    return block;
  });
  answer.replaceChildren(title, ...details);
}

/** @param {string} text */
function indent(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/**
 * @template {HTMLElement} Element
 * @param {string} id
 * @param {new () => Element} kind
 * @returns {Element}
 */
function byId(id, kind) {
  const element = document.getElementById(id);
  if (!(element instanceof kind)) throw new Error(`The page has no ${id}.`);
  return element;
}
