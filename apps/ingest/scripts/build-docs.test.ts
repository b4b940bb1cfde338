import { readFileSync } from "node:fs";
import { bookingFields, eventKinds } from "@booking-events/schema";
import { beforeAll, describe, expect, test } from "vitest";
import { loadPages } from "../src/pages/pages.ts";
import { buildDocs } from "./build-docs.ts";
import { renderGuide } from "./guide.ts";
import { html } from "./html.ts";
import { readSamples } from "./samples.ts";
import { readSources, type Sources } from "./sources.ts";

const names = ["index.html", "reference.html", "try-it.html", "search.json"];
const documents = ["index.html", "reference.html", "try-it.html"] as const;
const read = (name: string) => readFileSync(new URL(`../docs/${name}`, import.meta.url), "utf8");
const [guide = "", reference = "", tryIt = ""] = documents.map(read);
const pagesByAddress = { "/docs": guide, "/docs/reference": reference, "/docs/try-it": tryIt };
const { openApi } = readSources();

/** Of a page with all that it loads, also the search and what "Try it" reads. */
const maxCompressedBytes = 100_000;

function valuesOf(page: string, attribute: string): string[] {
  return [...page.matchAll(new RegExp(` ${attribute}="([^"]*)"`, "g"))].map(([, value]) => value ?? "");
}

test("the committed pages are up to date; otherwise run `npm run json-schema`", () => {
  const built = buildDocs();
  expect(Object.keys(built)).toEqual(names);
  for (const name of names) expect(read(name) === built[name], name).toBe(true);
});

describe("every link leads to a place on a page or to a file that ingest serves:", () => {
  const places = new Set(
    Object.entries(pagesByAddress).flatMap(([path, page]) => [
      path,
      ...valuesOf(page, "id").map((id) => `${path}#${id}`),
    ]),
  );
  for (const path of loadPages().keys()) places.add(path);
  // The script of "Try it" reads the operation from these.
  for (const path of Object.keys(openApi.paths)) places.add(`/docs/try-it#${path.split("/")[2]}`);

  test.each(Object.entries(pagesByAddress))("%s", (path, page) => {
    const ids = valuesOf(page, "id");
    expect(ids).toEqual([...new Set(ids)]);
    const links = [...valuesOf(page, "href"), ...valuesOf(page, "src")].map((link) => {
      const { pathname, hash } = new URL(link, `http://x${path}`);
      return `${pathname}${hash}`;
    });
    expect(links.filter((link) => !places.has(link))).toEqual([]);
  });

  test("what the search finds", () => {
    const found = JSON.parse(read("search.json")) as string[][];
    expect(found.map(([, , href]) => `/${href}`).filter((link) => !places.has(link))).toEqual([]);
    const titles = found.map(([title]) => title);
    for (const title of ["consumerPhone", "503", "partner-held", "unreadable-phone", "too-long", "Order"])
      expect(titles).toContain(title);
  });
});

test.each(documents)("nothing in %s needs an exception from the content security policy", (name) => {
  expect(read(name)).not.toMatch(
    /<style|<script(?! type="module" src=)|<iframe|<object|<base|\son\w+=|\sstyle=|javascript:/i,
  );
});

test("the guide's page has the chapters that a partner needs, and everything of the guide", () => {
  expect(valuesOf(guide, "id")).toEqual(
    expect.arrayContaining(["in-one-minute", "identify-a-booking", "sending-again", "order", "going-live", "clients"]),
  );
  const { guide: markdown } = readSources();
  const words = (text: string) => text.match(/\p{L}{6,}/gu) ?? [];
  const shown = new Set(words(guide.replaceAll(/<[^>]*>/g, " ")));
  expect(words(markdown.replaceAll(/\(\S+?\)|<!--.*?-->|^```.*$/gm, "")).filter((word) => !shown.has(word))).toEqual(
    [],
  );
});

describe("the reference has everything in the OpenAPI document:", () => {
  test.each(bookingFields)("$name", ({ name }) => {
    const { description = "", examples: [example] = [] } =
      openApi.components.schemas["BookingInput"]?.properties?.[name] ?? {};
    const row = new RegExp(`<tr id="field-${name}">.*?</tr>`, "s").exec(reference)?.[0];
    const [meaning = "", reading = "as sent"] = description.split(" Read as: ");
    expect(row).toContain(html`<td>${meaning}</td>`.text);
    expect(row).toContain(html`<td data-label="Read as">${reading.replace(/\.$/, "")}</td>`.text);
    expect(row).toContain(html`<code>${example ?? ""}</code>`.text);
    expect(row).toMatch(/<span class="type">(text|date|e-mail address)/);
  });

  test.each(Object.keys(openApi.components.responses))("the answer %s with its codes", (status) => {
    const { examples = {} } = openApi.components.responses[status]?.content["application/json"] ?? {};
    const section = new RegExp(`<section id="status-${status}".*?</section>`, "s").exec(reference)?.[0];
    for (const code of Object.keys(examples)) if (status !== "200") expect(section).toContain(`id="code-${code}"`);
    expect(section).toContain("X-Request-Id");
    if (status === "200") expect(section).toMatch(/eventId.*dryRun/s);
  });

  test.each([
    ["consumerTripPartnerExternalReference", "255"],
    ["consumerGivenName", "8,192"],
  ])("%s has the limit that counts", (name, limit) => {
    const row = new RegExp(`<tr id="field-${name}">.*?</tr>`, "s").exec(reference)?.[0];
    expect(row).toContain(`up to ${limit} characters`);
  });

  test.each(eventKinds)("%s, with examples of both types", (kind) => {
    const section = new RegExp(`<section id="${kind}Booking".*?</section>`, "s").exec(reference)?.[0];
    expect(section).toContain(
      `<span class="method method-post">POST</span> <code>/booking-event/${kind}/{secret}</code>`,
    );
    for (const text of ["(form)", 'value="curl"', 'value="csharp"', 'href="#status-422"'])
      expect(section).toContain(text);
  });

  test.each(["invalid-line", "answers-unread", "already-sending-batch"])("the code %s of batches", (code) => {
    expect(reference).toContain(`id="code-${code}"`);
  });

  test.each([
    ["findReceipt", "GET", "receipt/{secret}/{eventId}", "no-such-event", "superseded"],
    ["findBooking", "GET", "booking/{secret}", "no-such-booking", "deleted"],
    ["reconcileBookings", "POST", "reconcile/{secret}", "invalid-list-line", "deleted-here"],
  ])("the question %s, with its codes and examples", (operationId, method, path, code, example) => {
    const section = new RegExp(`<section id="${operationId}".*?</section>`, "s").exec(reference)?.[0];
    const badge = `<span class="method method-${method.toLowerCase()}">${method}</span>`;
    for (const text of [badge, path, `id="code-${code}"`, example]) expect(section).toContain(text);
  });
});

test.each(Object.keys(pagesByAddress))("%s is small with all that it loads", (path) => {
  const pages = loadPages();
  const shared = ["/docs/pages.css", "/docs/docs.css", "/docs/docs.js", "/docs/icon.svg", "/docs/search.json"];
  const files = [path, ...shared, ...(path === "/docs/try-it" ? ["/docs/try-it.js", "/openapi.json"] : [])];
  const sizes = files.map((file) => pages.get(file)?.gzipped.body.length ?? Number.POSITIVE_INFINITY);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(maxCompressedBytes);
});

describe("rendering the guide", () => {
  let sources: Sources;
  const render = (text: string) => renderGuide({ ...sources, guide: `# Title\n\n${text}\n` });

  beforeAll(() => {
    const samples = new Map([["send", [{ id: "curl", name: "curl", language: "bash" as const, text: "curl <x>" }]]]);
    sources = { ...readSources(), samples };
  });

  test("fails for what the page cannot show", () => {
    expect(() => render("[x](adr/json.md)")).toThrow("The guide links to adr/json.md");
    expect(() => render("<!-- samples: fly -->")).toThrow("names the samples fly, which do not exist");
    expect(() => render("<!-- sampels: send -->")).toThrow("does not know");
  });

  test("puts samples and code beside the prose before them, and links names to the reference", () => {
    const { body, contents } = render(
      "## One two\n\nWith `X-Request-Id`.\n\n<!-- samples: send -->\n\nMore.\n\n### Three",
    );
    expect(body.text).toMatch(
      /One two<\/a><\/h2>\n<div class="row">\n<div class="prose">.*href="docs\/reference#header-X-Request-Id"/s,
    );
    expect(body.text).toMatch(
      /<div class="side">\n<fieldset class="code tabs">.*curl &lt;x&gt;.*<div class="prose after">\n<p>More/s,
    );
    expect(contents.map(({ id, below }) => [id, below.map((each) => each.id)])).toEqual([["one-two", ["three"]]]);
  });

  test("escapes what is not markup", () => {
    expect(html`<p>${'<b>&"'}</p>`.text).toBe("<p>&lt;b&gt;&amp;&quot;</p>");
    expect(render("## A\n\n`<b>`\n\n```sh\na <b> & c\n```").body.text).not.toContain("<b>");
  });
});

test("each sample exists in all six languages", () => {
  const samples = readSamples(new URL("../../../docs/clients/samples/", import.meta.url));
  for (const [name, languages] of samples)
    expect([name, ...languages.map(({ id }) => id)]).toEqual([
      name,
      "curl",
      "typescript",
      "python",
      "php",
      "java",
      "csharp",
    ]);
});
