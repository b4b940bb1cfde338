import { readFileSync } from "node:fs";
import { bookingFields, eventKinds } from "@booking-events/schema";
import { describe, expect, test } from "vitest";
import { loadPages } from "../src/pages/pages.ts";
import { buildCurrentPage } from "./current-page.ts";
import { html } from "./html.ts";
import { renderGuide } from "./render-guide.ts";

const page = readFileSync(new URL("../reference-page/index.html", import.meta.url), "utf8");
const openApi = JSON.parse(readFileSync(new URL(import.meta.resolve("@booking-events/schema/openapi.json")), "utf8"));
const valuesOf = (attribute: string) =>
  [...page.matchAll(new RegExp(` ${attribute}="([^"]*)"`, "g"))].map(([, value]) => value ?? "");

const maxCompressedBytes = 500_000;

test("the committed page is up to date; otherwise run `npm run json-schema`", () => {
  expect(page).toBe(buildCurrentPage());
});

test("every link leads to a place on the page or to a file that ingest serves", () => {
  const ids = valuesOf("id");
  expect(ids).toEqual([...new Set(ids)]);
  const served = [...loadPages().keys()].map((path) => path.slice(1));
  const targets = [...ids.map((id) => `#${id}`), ...served];
  for (const link of [...valuesOf("href"), ...valuesOf("src")]) expect(targets).toContain(link);
});

test("nothing on the page needs an exception from the content security policy", () => {
  expect(page).not.toMatch(
    /<style|<script(?! type="module" src=)|<iframe|<object|<base|\son\w+=|\sstyle=|javascript:/i,
  );
});

test("the page has the chapters that a partner needs", () => {
  expect(valuesOf("id")).toEqual(
    expect.arrayContaining([
      ...["in-one-minute", "identify-a-booking", "sending-again", "order", "dry-runs", "rotate-the-secret"],
      ...["going-live", "try-it", "reference"],
    ]),
  );
});

describe("the page has everything in the OpenAPI document:", () => {
  test.each(bookingFields)("$name", ({ name }) => {
    const { description, examples } = openApi.components.schemas.BookingInput.properties[name];
    const entry = new RegExp(`<dt><code>${name}</code>.*?</dd>`, "s").exec(page)?.[0];
    expect(entry).toContain(html`${description}`.text);
    expect(entry).toContain(html`<code>${examples[0]}</code>`.text);
  });

  test.each(Object.keys(openApi.components.responses))("the answer %s with its codes", (status) => {
    const { content } = openApi.components.responses[status];
    const section = new RegExp(`<h4 id="status-${status}">.*?(?=<h[34])`, "s").exec(page)?.[0];
    for (const code of Object.keys(content["application/json"].examples)) {
      if (status !== "200") expect(section).toContain(`<dt><code>${code}</code></dt>`);
    }
    expect(section).toContain("X-Request-Id");
    if (status === "200") expect(section).toMatch(/&quot;eventId&quot;.*&quot;dryRun&quot;/s);
  });

  test.each(eventKinds)("%s, with examples of both types", (kind) => {
    const section = new RegExp(`<h4 id="${kind}Booking">.*?(?=<h[34])`, "s").exec(page)?.[0];
    expect(section).toContain(`POST /booking-event/${kind}/{secret}`);
    expect(section).toContain("Examples as <code>application/json</code>");
    expect(section).toContain("Examples as <code>application/x-www-form-urlencoded</code>");
  });

  test.each([
    ["findReceipt", "GET /booking-event/receipt/{secret}/{eventId}", "no-such-event", "superseded"],
    ["findBooking", "GET /booking-event/booking/{secret}", "no-such-booking", "deleted"],
    ["reconcileBookings", "POST /booking-event/reconcile/{secret}", "invalid-list-line", "deleted-here"],
  ])("the question %s, with its codes and examples", (operationId, request, code, example) => {
    const section = new RegExp(`<h4 id="${operationId}">.*?(?=<h[34])`, "s").exec(page)?.[0];
    for (const text of [request, `<dt><code>${code}</code></dt>`, example]) expect(section).toContain(text);
  });
});

test("with all its files, the page is small", () => {
  const bytes = [...loadPages().values()].reduce((sum, { gzipped }) => sum + gzipped.body.length, 0);
  expect(bytes).toBeLessThan(maxCompressedBytes);
});

describe("rendering the guide", () => {
  const guide = (text: string) => `# Title\n\n<!-- fields -->\n\nA table.\n\n<!-- /fields -->\n\n${text}\n`;

  test("fails for a link that readers of the page cannot follow", () => {
    expect(() => renderGuide(guide("[x](adr/json.md)"), html``)).toThrow("The guide links to adr/json.md");
    expect(renderGuide(guide("[x](#title)"), html``).body.text).toContain('<a href="#title">x</a>');
  });

  test("puts the list of fields in place of the table", () => {
    const { body, sections } = renderGuide(guide("## One two\n\n### Three"), html`<p>All fields</p>`);
    expect(body.text).toContain("<p>All fields</p>");
    expect(body.text).not.toContain("A table.");
    expect(sections).toEqual([{ id: "one-two", title: "One two" }]);
    expect(() => renderGuide("# Title\n\nNo mark.", html``)).toThrow("does not mark its table");
  });

  test("escapes what is not markup", () => {
    expect(html`<p>${'<b>&"'}</p>`.text).toBe("<p>&lt;b&gt;&amp;&quot;</p>");
    expect(renderGuide(guide("`<b>`\n\n```sh\na <b> & c\n```"), html``).body.text).not.toContain("<b>");
  });
});
