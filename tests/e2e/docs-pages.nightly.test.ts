import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { freePort } from "@booking-events/scripts/ports";
import { findOrInstallTool } from "@booking-events/scripts/services";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type RunningApp, runApp, shareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-test_with-what+base64/has=";
const surroundings = shareSurroundings(secret);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const executablePath = await findOrInstallTool("chromium", { say: console.log });
if (executablePath === undefined) console.log("The pages of /docs are not tested: there is no Chromium.");

/** Where pictures of the pages go, for a person to look at. */
const pictures = process.env["PICTURES"];

const windows: [name: string, options: BrowserContextOptions][] = [
  ["desktop", { viewport: { width: 1_440, height: 900 } }],
  ["dark desktop", { viewport: { width: 1_440, height: 900 }, colorScheme: "dark" }],
  ["tablet", { viewport: { width: 768, height: 1_024 } }],
  ["phone", { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }],
];
const desktop = { viewport: { width: 1_440, height: 900 } };
const phone = { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true };
const paths = ["/docs", "/docs/reference", "/docs/try-it"];

describe.skipIf(executablePath === undefined)("in Chromium", () => {
  let browser: Browser;
  let ingest: RunningApp;
  let lookup: RunningApp;
  let worker: RunningApp;
  let problems: string[];
  let requests: string[];

  beforeAll(async () => {
    const [ingestPort, lookupPort] = [await freePort(), await freePort()];
    const [docsOrigin, lookupUrl] = [ingestPort, lookupPort].map((port) => `http://127.0.0.1:${port}`);
    const start = (name: "ingest" | "lookup" | "worker", more: Record<string, string>) =>
      runApp(name, { ...surroundings.environment, ...more });
    [ingest, lookup, worker] = await Promise.all([
      start("ingest", { PORT: String(ingestPort), LOOKUP_URL: lookupUrl ?? "" }),
      start("lookup", { PORT: String(lookupPort), DOCS_ORIGIN: docsOrigin ?? "" }),
      start("worker", {}),
    ]);
    await Promise.all([ingest, lookup, worker].map((app) => app.untilReady()));
    // Root, as in a container, cannot use Chromium's sandbox.
    browser = await chromium.launch({ executablePath: executablePath ?? "", args: ["--no-sandbox"] });
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    await Promise.all([ingest, lookup, worker].map((app) => app?.stop("SIGKILL")));
  });
  beforeEach(() => {
    [problems, requests] = [[], []];
  });

  async function open(path: string, options: BrowserContextOptions = desktop): Promise<Page> {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    page.on("console", (message) => problems.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("requestfailed", (request) => problems.push(`failed: ${request.url()}`));
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(`${ingest.url}${path}`);
    return page;
  }

  async function takePicture(page: Page, name: string): Promise<void> {
    if (pictures === undefined) return;
    mkdirSync(pictures, { recursive: true });
    await page.screenshot({ path: `${pictures}/docs-${name}.png` });
  }

  const current = (page: Page) => page.locator('#contents [aria-current="location"]').textContent();

  describe.each(windows)("%s:", (name, options) => {
    test.each(paths)("%s fits, is accessible, and loads nothing from elsewhere", async (path) => {
      const page = await open(path, options);
      if (path === "/docs/try-it") await page.getByLabel("Secret").waitFor();
      await takePicture(page, `${path.split("/")[2] ?? "guide"}-${name.replaceAll(" ", "-")}`);
      // Also what is folded away.
      await page.evaluate("for (const each of document.querySelectorAll('details')) each.open = true");
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(options.viewport?.width);
      // The policy forbids to add a script to the page, but not to evaluate one from outside.
      await page.evaluate(axe);
      expect(await page.evaluate(findViolations)).toEqual([]);
      expect(problems).toEqual([]);
      for (const request of requests) expect(new URL(request).origin).toBe(ingest.url);
      await page.context().close();
    });
  });

  test("the address of the host leads to the guide", async () => {
    const page = await open("/");
    expect(page.url()).toBe(`${ingest.url}/docs`);
    await page.goto(`${ingest.url}/docs/reference/`);
    expect(page.url()).toBe(`${ingest.url}/docs/reference`);
    await page.context().close();
  });

  test("the contents mark where the reader is, and stay in sight", async () => {
    const page = await open("/docs");
    for (const title of ["Payloads", "Idempotency-Key", "Limits"]) {
      await page.locator("#contents").getByRole("link", { name: title, exact: true }).click();
      await expect.poll(() => current(page)).toBe(title);
    }
    await page.goto(`${ingest.url}/docs/reference#status-422`);
    await expect.poll(() => current(page)).toContain("422");
    const box = await page.locator('#contents [aria-current="location"]').boundingBox();
    expect(box?.y).toBeGreaterThan(60);
    expect(box?.y).toBeLessThan(900);
    await page.context().close();
  });

  test("code stands beside the prose where there is room, and below it on a phone", async () => {
    const placesOf = async (options: BrowserContextOptions) => {
      const page = await open("/docs/reference", options);
      const row = page.locator("#createBooking .row");
      const boxes = [await row.locator(".prose").boundingBox(), await row.locator(".side").boundingBox()];
      await page.context().close();
      return boxes.map((box) => box ?? { x: 0, y: 0, width: 0, height: 0 });
    };
    const [prose, code] = await placesOf(desktop);
    expect(code?.x).toBeGreaterThan((prose?.x ?? 0) + (prose?.width ?? 0));
    expect(code?.y).toBe(prose?.y);
    const [above, below] = await placesOf(phone);
    expect(below?.x).toBe(above?.x);
    expect(below?.y).toBeGreaterThan((above?.y ?? 0) + (above?.height ?? 0));
  });

  test("the language of samples is chosen once for all pages, without a cookie", async () => {
    const page = await open("/docs");
    const shown = (text: string) => page.locator(".tab:visible", { hasText: text });
    expect(await shown("curl").count()).toBeGreaterThan(5);
    await page.locator(".tabs").first().getByText("Python", { exact: true }).click();
    expect(await shown("BookingEvents(").count()).toBeGreaterThan(5);
    expect(await shown("curl").count()).toBe(0);
    await page.goto(`${ingest.url}/docs/reference`);
    expect(await shown("BookingEvents(").count()).toBeGreaterThan(3);
    await page.locator(".tabs input:checked").first().press("ArrowRight");
    expect(await shown("<?php").count()).toBeGreaterThan(3);
    expect(await page.locator(".tab:visible .hljs-string").count()).toBeGreaterThan(5);
    expect(await page.context().cookies()).toEqual([]);
    await page.context().close();
  });

  test("samples name this host, and can be copied", async () => {
    const page = await open("/docs");
    await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
    await page.locator("#in-one-minute").getByRole("button", { name: "Copy" }).first().click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    const copied = (await page.evaluate("navigator.clipboard.readText()")) as string;
    expect(copied).toContain(`BOOKING_EVENTS_URL=${ingest.url}\n`);
    expect(copied).toContain(`LOOKUP_URL=${lookup.url}\n`);
    expect(await page.locator("main").textContent()).not.toContain("bookings.example.com");
    await page.context().close();
  });

  test("the search finds headings, fields, statuses and codes, by keyboard and without a network", async () => {
    const page = await open("/docs");
    expect(requests.some((url) => url.endsWith("/search.json"))).toBe(false);
    await page.keyboard.press("/");
    await page.getByRole("dialog").getByRole("link").first().waitFor({ state: "detached" });
    await page.getByRole("searchbox").fill("order");
    await page.getByRole("dialog").getByRole("link", { name: "Order" }).first().waitFor();
    await takePicture(page, "search");
    await page.context().setOffline(true);
    const first = page.getByRole("dialog").getByRole("link").first();
    for (const [words, href] of [
      ["consumerphone", "reference#field-consumerPhone"],
      ["partner-held", "reference#code-partner-held"],
      ["503", "reference#status-503"],
      ["unreadable-phone", "docs#warning-unreadable-phone"],
      ["windows-1252 utf-16", "docs#operations"],
    ] as const) {
      await page.getByRole("searchbox").fill(words);
      await expect.poll(() => first.getAttribute("href")).toMatch(new RegExp(`${href}$`));
    }
    await page.keyboard.press("ArrowDown");
    expect(await page.evaluate("document.activeElement.getAttribute('href')")).toBe(await first.getAttribute("href"));
    await page.keyboard.press("Enter");
    expect(page.url()).toBe(`${ingest.url}/docs#operations`);
    expect(await page.getByRole("dialog").isVisible()).toBe(false);
    await page.context().close();
  });

  test.each(["field-consumerPhone", "code-partner-held", "status-429", "parameter-Idempotency-Key"])(
    "%s has a link of its own, which one sees",
    async (id) => {
      const page = await open(`/docs/reference#${id}`);
      const target = page.locator(`[id="${id}"]`);
      const link = target.locator(`a.anchor[href="#${id}"]`);
      const box = await link.boundingBox();
      expect(box?.y).toBeGreaterThanOrEqual(60);
      expect(box?.y).toBeLessThan(900);
      const sign = `getComputedStyle(document.querySelector('[id="${id}"] a.anchor'), '::after').content`;
      expect(await page.evaluate(sign)).toContain("#");
      await page.context().close();
    },
  );

  test("on a phone, the contents are behind a button, also without JavaScript", async () => {
    for (const javaScriptEnabled of [true, false]) {
      const page = await open("/docs", { ...phone, javaScriptEnabled });
      const contents = page.locator("#contents");
      expect(await contents.isVisible()).toBe(false);
      await page.getByRole("button", { name: "Contents" }).click();
      await takePicture(page, "menu");
      await contents.getByRole("link", { name: "Dry runs" }).click();
      expect(page.url()).toBe(`${ingest.url}/docs#dry-runs`);
      if (javaScriptEnabled) expect(await contents.isVisible()).toBe(false);
      await page.context().close();
    }
  });

  test("dark and light differ, and whoever uses the keyboard sees where they are", async () => {
    const [light, dark] = [await open("/docs"), await open("/docs", { ...desktop, colorScheme: "dark" })];
    const brightness = (page: Page) =>
      page.evaluate("getComputedStyle(document.documentElement).backgroundColor.match(/\\d+/g).map(Number)[0]");
    expect([(await brightness(light)) as number, (await brightness(dark)) as number]).toEqual([255, 13]);
    await light.keyboard.press("Tab");
    const skip = light.getByRole("link", { name: "Skip to the content" });
    expect(await light.evaluate("document.activeElement.textContent")).toBe("Skip to the content");
    await expect.poll(async () => (await skip.boundingBox())?.y).toBeGreaterThanOrEqual(0);
    await light.keyboard.press("Tab");
    expect(await light.evaluate("getComputedStyle(document.activeElement).outlineStyle")).toBe("solid");
    await Promise.all([light, dark].map((page) => page.context().close()));
  });

  test("without JavaScript, everything can be read, tabs work, and no form can send anything", async () => {
    const page = await open("/docs", { ...desktop, javaScriptEnabled: false });
    await page.getByText("Give each event its own key").waitFor();
    await page.locator("#in-one-minute .tabs").getByText("PHP", { exact: true }).click();
    expect(await page.locator("#in-one-minute .tab:visible").textContent()).toContain("<?php");
    await page.goto(`${ingest.url}/docs/try-it`);
    expect(await page.locator("form:visible").count()).toBe(0);
    await page.getByText("The form needs JavaScript.").waitFor();
    await page.context().close();
  });

  test("each client can be downloaded, and has the digest that the page shows", async () => {
    const page = await open("/docs");
    const digests =
      (await page.evaluate(`Promise.all(Array.from(document.querySelectorAll(".clients tbody tr"), async (row) => {
      const bytes = await (await fetch(row.querySelector("a").href)).arrayBuffer();
      const digest = Array.from(new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)), (byte) =>
        byte.toString(16).padStart(2, "0")).join("");
      return [digest, row.querySelector(".digest").textContent, row.querySelectorAll("td")[1].textContent];
    }))`)) as string[][];
    expect(digests.length).toBeGreaterThanOrEqual(5);
    for (const [digest, shown, version] of digests) {
      expect(digest).toBe(shown);
      expect(version).toMatch(/^\d+\.\d+\.\d+$/);
    }
    await page.context().close();
  });

  describe("Try it:", () => {
    async function choose(page: Page, operation: string) {
      await page.goto(`${ingest.url}/docs/try-it#${operation}`);
      await expect.poll(() => page.getByLabel("Operation").inputValue()).toBe(operation);
      await page.getByLabel("Secret").fill(secret);
    }

    async function send(page: Page): Promise<string> {
      await page.evaluate("document.getElementById('answer').replaceChildren()");
      await page.getByRole("button", { name: "Send" }).click();
      await page.locator("#answer pre").first().waitFor();
      return (await page.locator("#answer").textContent()) ?? "";
    }

    const key = (page: Page) => page.getByLabel("Idempotency-Key").inputValue();

    test.each([
      ["create", "application/json"],
      ["update", "application/x-www-form-urlencoded"],
      ["delete", "application/json"],
    ])("%s as %s is a dry run at first, and keeps its key", async (operation, type) => {
      const page = await open("/docs/try-it");
      await choose(page, operation);
      await page.getByLabel("Format").selectOption(type);
      const before = await key(page);
      const answer = await send(page);
      for (const text of ["Status 200", "x-request-id: ", '"dryRun": true']) expect(answer).toContain(text);
      expect(await key(page)).toBe(before);
      expect(problems).toEqual([]);
      await page.context().close();
    });

    test("the body comes before the headers, and the command does the same without showing the secret", async () => {
      const page = await open("/docs/try-it");
      await choose(page, "create");
      const [body, header] = await Promise.all(
        ["Body", "Idempotency-Key"].map((name) => page.getByLabel(name).boundingBox()),
      );
      expect(body?.y).toBeLessThan(header?.y ?? 0);
      const command = (await page.locator("#curl").textContent()) ?? "";
      expect(command).not.toContain("a-secret-of");
      for (const text of [`'${ingest.url}/booking-event/create'`, "X-Dry-Run: true", await key(page), "booking-2001"])
        expect(command).toContain(text);
      await page.getByRole("button", { name: "Copy" }).waitFor();
      await page.context().close();
    });

    test("after an accepted event there is another key, and lookup, at another origin, says what became of it", async () => {
      const page = await open("/docs/try-it");
      await choose(page, "create");
      await page.getByLabel("Dry run").uncheck();
      const before = await key(page);
      const [, eventId = ""] = /"eventId": "([^"]+)"/.exec(await send(page)) ?? [];
      expect(await key(page)).not.toBe(before);
      await page.getByRole("button", { name: "Ask what became of it" }).click();
      expect(await page.getByLabel("eventId").inputValue()).toBe(eventId);
      await expect.poll(() => send(page), { timeout: 20_000 }).toContain('"outcome": "created"');
      await choose(page, "booking");
      await page.getByLabel("reference", { exact: true }).fill("booking-2001");
      expect(await send(page)).toContain('"state": "active"');
      await choose(page, "reconcile");
      await page.getByLabel("Body").fill('{"reference":"booking-2002"}');
      expect(await send(page)).toMatch(/"booking-2002".*"missing".*"summary"/s);
      expect(problems).toEqual([]);
      expect([...new Set(requests.map((url) => new URL(url).origin))].sort()).toEqual([ingest.url, lookup.url].sort());
      await page.context().close();
    });

    test("a batch has new keys after it was accepted, and the activity shows its event", async () => {
      const page = await open("/docs/try-it");
      await choose(page, "batch");
      await page.getByLabel("Dry run").uncheck();
      const keyOf = async () => /"idempotencyKey":\s*"([^"]+)"/.exec(await page.getByLabel("Body").inputValue())?.[1];
      const before = await keyOf();
      expect(await send(page)).toMatch(/"line": 1,\s+"status": 200,\s+"eventId"/);
      expect(await keyOf()).toMatch(/^try-it\/./);
      expect(await keyOf()).not.toBe(before);
      await choose(page, "activity");
      expect(await send(page)).toMatch(/Status 200.*"hours"/s);
      expect(problems).toEqual([]);
      await page.context().close();
    });

    test("a refusal's codes lead to what they mean", async () => {
      const page = await open("/docs/try-it");
      await choose(page, "create");
      await page.getByLabel("Body").fill('{"consumerTripPartnerExternalReference": "T", "consumerPhone": null}');
      expect(await send(page)).toContain("Status 422");
      await takePicture(page, "answer");
      await page.evaluate(axe);
      expect(await page.evaluate(findViolations)).toEqual([]);
      const links = await page.evaluate(
        "Array.from(document.querySelectorAll('#answer a'), (link) => link.getAttribute('href'))",
      );
      expect(links).toEqual([
        "../docs/reference#status-422",
        "../docs/reference#code-invalid-data",
        "../docs#violation-null",
      ]);
      await page.locator("#answer").getByText('"null"').click();
      expect(page.url()).toBe(`${ingest.url}/docs#violation-null`);
      await page.context().close();
    });

    test("the secret stays out of each address, the history, storage and the list of requests", async () => {
      const page = await open("/docs/try-it");
      for (const operation of ["create", "receipt"]) {
        await choose(page, operation);
        if (operation === "receipt") await page.getByLabel("eventId").fill("01a1fafe-d690-7608-9309-bff7f221cbc9");
        await send(page);
      }
      const kept = (await page.evaluate(`[location.href, document.referrer, history.length, document.cookie,
        JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.documentElement.innerHTML,
        JSON.stringify(performance.getEntries())].join()`)) as string;
      expect([kept, ...requests].filter((text) => text.includes("a-secret-of"))).toEqual([]);
      expect(await page.context().cookies()).toEqual([]);
      await page.reload();
      expect(await page.getByLabel("Secret").inputValue()).toBe("");
      await page.context().close();
    });
  });
});

const findViolations = `axe.run().then(({ violations }) =>
  violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`;
