import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { findTool, installTool } from "@booking-events/scripts/services";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-test/with?characters#that need encoding";
const surroundings = prepareSurroundings(secret);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

await installTool("chromium", { say: console.log });
const executablePath = findTool("chromium");
if (executablePath === undefined) console.log("The reference page is not tested: there is no Chromium.");

const windows: [name: string, options: BrowserContextOptions][] = [
  ["a desktop", { viewport: { width: 1_280, height: 900 } }],
  ["a dark desktop", { viewport: { width: 1_280, height: 900 }, colorScheme: "dark" }],
  ["a phone", { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }],
];

describe.skipIf(executablePath === undefined)("in Chromium", () => {
  let browser: Browser;

  beforeAll(async () => {
    // Root, as in a container, cannot use Chromium's sandbox.
    browser = await chromium.launch({ executablePath: executablePath ?? "", args: ["--no-sandbox"] });
  });
  afterAll(() => browser.close());

  /** Opens the page, and returns what the test must not find: problems, and requests to any other host. */
  async function open({ url }: RunningApp, options: BrowserContextOptions = {}) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const problems: string[] = [];
    const requests: string[] = [];
    page.on("console", (message) => problems.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("requestfailed", (request) => problems.push(`failed: ${request.url()}`));
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(`${url}/docs`);
    return { page, context, problems, requests };
  }

  /** Fills in the form, sends it and returns the answer. */
  async function tryOut(page: Page, { kind = "create", type = "JSON", isDryRun = true } = {}) {
    await page.getByLabel("Operation").selectOption(kind);
    await page.getByLabel("Body").selectOption(type);
    await page.getByLabel("Secret").fill(secret);
    expect(await page.getByLabel("Dry run").isChecked()).toBe(true);
    await page.getByLabel("Dry run").setChecked(isDryRun);
    await page.getByRole("button", { name: "Send" }).click();
    await page.locator("#answer pre").last().waitFor();
    return page.locator("#answer").textContent();
  }

  test.each(windows)("the page of %s fits, is accessible, and loads nothing from elsewhere", async (_name, options) => {
    const ingest = await surroundings().start("ingest");
    const { page, context, problems, requests } = await open(ingest, options);
    await page.getByLabel("Secret").waitFor();
    // Also what is folded away.
    for (const details of await page.locator("details").all())
      await details.evaluate((each) => each.setAttribute("open", ""));
    const widths = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]");
    expect((widths as number[])[0]).toBeLessThanOrEqual(options.viewport?.width ?? 0);
    // The policy forbids to add a script to the page, but not to evaluate one from outside.
    await page.evaluate(axe);
    const { violations } = (await page.evaluate("axe.run()")) as {
      violations: { id: string; nodes: { html: string }[] }[];
    };
    expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)).toEqual([]);
    expect(problems).toEqual([]);
    for (const request of requests) expect(new URL(request).origin).toBe(ingest.url);
    await context.close();
  });

  test.each([
    ["create", "JSON"],
    ["update", "Form"],
    ["delete", "JSON"],
    ["delete", "Form"],
  ])("a dry run of %s as %s gets its answer", async (kind, type) => {
    const ingest = await surroundings().start("ingest");
    const { page, context, problems } = await open(ingest);
    const answer = await tryOut(page, { kind, type });
    expect(answer).toContain("Status 200");
    expect(answer).toContain("x-request-id: ");
    expect(answer).toContain('"dryRun": true');
    expect(problems).toEqual([]);
    await context.close();
  });

  test("without dry run, the event is accepted; and a refusal is shown", async () => {
    const ingest = await surroundings().start("ingest");
    const { page, context } = await open(ingest);
    expect(await tryOut(page, { isDryRun: false })).toContain('"eventId": ');
    await page.getByLabel("Dry run").check();
    await page.getByLabel("Payload").fill('{"consumerPhone": null}');
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("Status 422").waitFor();
    expect(await page.locator("#answer").textContent()).toContain('"code": "invalid-data"');
    await context.close();
  });

  test("the secret stays out of the address, the history, storage and the list of requests", async () => {
    const ingest = await surroundings().start("ingest");
    const { page, context, requests } = await open(ingest);
    await tryOut(page);
    const kept = (await page.evaluate(`[location.href, document.referrer, history.length, document.cookie,
      JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.documentElement.innerHTML,
      JSON.stringify(performance.getEntries())].join()`)) as string;
    for (const trace of [secret, encodeURIComponent(secret), "a-secret-of"]) expect(kept).not.toContain(trace);
    expect(await context.cookies()).toEqual([]);
    const withSecret = requests.filter((url) => url.includes("a-secret-of"));
    expect(withSecret).toEqual([`${ingest.url}/booking-event/create/${encodeURIComponent(secret)}`]);
    await page.reload();
    expect(await page.getByLabel("Secret").inputValue()).toBe("");
    await context.close();
  });

  test("without JavaScript, the guide and the reference can be read, and no form can send anything", async () => {
    const ingest = await surroundings().start("ingest");
    const { page, context, requests } = await open(ingest, { javaScriptEnabled: false });
    await page.getByText("Give each event its own key").waitFor();
    await page.getByText("Statuses and codes").first().waitFor();
    expect(await page.locator("form").isVisible()).toBe(false);
    await page.getByText("The form needs JavaScript.").waitFor();
    expect(requests).toContain(`${ingest.url}/docs/style.css`);
    await context.close();
  });
});
