import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { findOrInstallTool } from "@booking-events/scripts/services";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { consolePages } from "./console-pages.ts";
import { fillConsole } from "./fill-console.ts";
import { type RunningApp, useOwnServices } from "./surroundings.ts";

const secret = "a-secret-of-the-console-tests";
const password = "a-secret-of-the-operators-of-the-console-tests";
const own = useOwnServices(secret);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const executablePath = await findOrInstallTool("chromium", { say: console.log });
if (executablePath === undefined) console.log("The console's pages are not tested: there is no Chromium.");

/** To look at the pages oneself: a folder for a picture of each. */
const pictures = process.env["PICTURES"];

const windows: [name: string, options: BrowserContextOptions][] = [
  ["a wide window", { viewport: { width: 1_440, height: 1_000 } }],
  ["a wide window in the dark", { viewport: { width: 1_440, height: 1_000 }, colorScheme: "dark" }],
  ["a tablet", { viewport: { width: 768, height: 1_024 }, hasTouch: true }],
  ["a tablet in the dark", { viewport: { width: 768, height: 1_024 }, hasTouch: true, colorScheme: "dark" }],
  ["a phone", { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }],
  [
    "a phone in the dark",
    { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true, colorScheme: "dark" },
  ],
];

describe.skipIf(executablePath === undefined)("in Chromium", () => {
  let browser: Browser;
  let desk: RunningApp;

  beforeAll(async () => {
    Object.assign(own.environment, { WEBHOOKS_ALLOW_PRIVATE: "true", CONSOLE_PASSWORD: password });
    await fillConsole(own, secret);
    desk = await own.running("console");
    // Root, as in a container, cannot use Chromium's sandbox.
    browser = await chromium.launch({ executablePath: executablePath ?? "", args: ["--no-sandbox"] });
  });
  afterAll(() => browser?.close());

  /** A visitor who has logged in. @returns also what the test must not find: problems, and requests to any other host */
  async function visit(options: BrowserContextOptions) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const problems: string[] = [];
    page.on("console", (message) => problems.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("request", (request) => {
      if (new URL(request.url()).origin !== desk.url) problems.push(`request: ${request.url()}`);
    });
    await page.goto(`${desk.url}/login`);
    await page.getByLabel("Your name").fill("Ada");
    await page.getByLabel("Password").fill(password);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    return { context, page, problems };
  }

  describe.each(windows)("in %s", (window, options) => {
    let visitor: Awaited<ReturnType<typeof visit>>;
    beforeAll(async () => {
      visitor = await visit(options);
    });
    afterAll(() => visitor?.context.close());

    test.each(consolePages)("%s fits, is accessible, and loads nothing from elsewhere", async (name, path) => {
      const { page, problems } = visitor;
      problems.length = 0;
      await page.goto(desk.url + path);
      if (pictures !== undefined)
        await page.screenshot({ path: `${pictures}/${name} ${window}.png`.replaceAll(" ", "-"), fullPage: true });
      await check(page, options);
      expect(problems.filter((problem) => !/status of (404|422)/.test(problem))).toEqual([]);
    });
  });

  async function check(page: Page, options: BrowserContextOptions): Promise<void> {
    expect(await page.title()).toMatch(/ · Booking events$/);
    expect(await page.locator("h1").count()).toBe(1);
    await checkWidth(page, options);
    expect(await findViolations(page)).toEqual([]);
    // Also what is folded away.
    for (const details of await page.locator("details").all())
      await details.evaluate((each) => each.setAttribute("open", ""));
    await checkWidth(page, options);
    expect(await findViolations(page)).toEqual([]);
  }

  async function checkWidth(page: Page, { viewport }: BrowserContextOptions): Promise<void> {
    const width = (await page.evaluate("document.documentElement.scrollWidth")) as number;
    expect(width).toBeLessThanOrEqual(viewport?.width ?? 0);
  }

  async function findViolations(page: Page): Promise<string[]> {
    // The policy forbids to add a script to the page, but not to evaluate one from outside.
    await page.evaluate(axe);
    const { violations } = (await page.evaluate("axe.run()")) as {
      violations: { id: string; nodes: { html: string }[] }[];
    };
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
  }

  test("the overview keeps itself up to date, and rests in the background", async () => {
    const { context, page, problems } = await visit({});
    await own.pool.query("update feed_readers set last_id = null where name = 'nightly.report'");
    await page.getByRole("row", { name: "nightly.report" }).getByText("starts over").waitFor();
    const isLive = (request: { url(): string }) => request.url().endsWith("/live/overview");
    const ended = page.waitForEvent("requestfailed", isLive);
    await hide(page, true);
    await ended;
    const begun = page.waitForRequest(isLive);
    await hide(page, false);
    await begun;
    expect(problems).toEqual([]);
    await context.close();
  });

  /** As if the visitor looked at another tab. */
  async function hide(page: Page, isHidden: boolean): Promise<void> {
    await page.evaluate(`
      Object.defineProperty(document, "hidden", { configurable: true, value: ${isHidden} });
      document.dispatchEvent(new Event("visibilitychange"));
    `);
  }

  test("by the keyboard, the first stop skips the navigation", async () => {
    const { context, page } = await visit({});
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    expect(await page.evaluate("document.activeElement.id")).toBe("main");
    await context.close();
  });

  test("without JavaScript, a partner is held and released", async () => {
    const { context, page } = await visit({ javaScriptEnabled: false });
    for (const [verb, done] of [
      ["Hold", "acme is on hold"],
      ["Release", "acme is released"],
    ] as const) {
      await page.goto(`${desk.url}/partners/acme`);
      await page.locator("summary", { hasText: verb }).click();
      await page.getByRole("button", { name: verb, exact: true }).click();
      await page.getByText(done).waitFor();
    }
    await context.close();
  });
});
