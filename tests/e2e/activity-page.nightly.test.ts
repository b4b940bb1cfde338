import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { waitFor } from "@booking-events/harness";
import { findOrInstallTool } from "@booking-events/scripts/services";
import { type Browser, type BrowserContextOptions, chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { postEvent, postOnce } from "./post-event.ts";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-activity-page-0123456789";
const surroundings = prepareSurroundings(secret);
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const executablePath = await findOrInstallTool("chromium", { say: console.log });
if (executablePath === undefined) console.log("The page of activity is not tested: there is no Chromium.");

const windows: [name: string, options: BrowserContextOptions][] = [
  ["a desktop", { viewport: { width: 1_440, height: 900 } }],
  ["a dark tablet", { viewport: { width: 768, height: 1_024 }, colorScheme: "dark" }],
  ["a phone", { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true }],
];

/** Sends what the page has to show, and returns a lookup that knows of it. */
async function prepare(): Promise<RunningApp> {
  const { start } = surroundings();
  const [ingest, , lookup] = await Promise.all([start("ingest"), start("worker"), start("lookup")]);
  const headers = { "Idempotency-Key": "K" };
  await postEvent(ingest, { secret, reference: "TRIP-1", fields: { consumerPhone: "12" }, headers });
  await postEvent(ingest, { secret, reference: "TRIP-1", fields: { consumerTripIsLocal: "perhaps" }, headers });
  await postOnce(ingest, { secret, reference: "TRIP-2", fields: { consumerPhone: null, agentEmail: "x" } });
  await waitFor(async () => {
    const activity = await fetch(`${lookup.url}/booking-event/activity/${secret}`);
    expect(await activity.json()).toMatchObject({ notices: [{}, {}], violations: [{}, {}], warnings: [{}, {}] });
  });
  return lookup;
}

describe.skipIf(executablePath === undefined)("in Chromium", () => {
  let browser: Browser;

  beforeAll(async () => {
    // Root, as in a container, cannot use Chromium's sandbox.
    browser = await chromium.launch({ executablePath: executablePath ?? "", args: ["--no-sandbox"] });
  });
  afterAll(() => browser.close());

  async function open({ url }: RunningApp, options: BrowserContextOptions = {}) {
    const context = await browser.newContext(options);
    const page = await context.newPage();
    const problems: string[] = [];
    const requests: string[] = [];
    page.on("console", (message) => problems.push(`${message.type()}: ${message.text()}`));
    page.on("pageerror", (error) => problems.push(String(error)));
    page.on("request", (request) => requests.push(request.url()));
    await page.goto(`${url}/activity`);
    return { page, context, problems, requests };
  }

  test("the page fits and is accessible, before and after it shows what was sent", async () => {
    const lookup = await prepare();
    for (const [name, options] of windows) {
      const { page, context, problems, requests } = await open(lookup, options);
      const check = async () => {
        const widths = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]");
        expect([name, (widths as number[])[0]]).toEqual([name, options.viewport?.width]);
        // The policy forbids to add a script to the page, but not to evaluate one from outside.
        await page.evaluate(axe);
        const { violations } = (await page.evaluate("axe.run()")) as {
          violations: { id: string; nodes: { html: string }[] }[];
        };
        expect(violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`)).toEqual([]);
      };
      await page.getByLabel("Secret").waitFor();
      await check();
      await page.getByLabel("Secret").fill(secret);
      await page.getByRole("button", { name: "Show" }).click();
      await page.getByRole("heading", { name: "Last refusals" }).waitFor();
      const text = (await page.locator("#activity").textContent()) ?? "";
      for (const shown of ["consumerPhone", "E.164", "key-reused", "invalid-data", "consumerPhone:null", "used here"])
        expect(text).toContain(shown);
      for (const details of await page.locator("details").all())
        await details.evaluate((each) => each.setAttribute("open", ""));
      await check();
      expect(problems).toEqual([]);
      for (const request of requests) expect(new URL(request).origin).toBe(lookup.url);
      await context.close();
    }
  }, 120_000);

  test("the secret stays out of the address, the history, storage and the list of requests", async () => {
    const lookup = await surroundings().start("lookup");
    const { page, context, requests } = await open(lookup);
    await page.getByLabel("Secret").fill(secret);
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByRole("heading", { name: "Limits" }).waitFor();
    const kept = (await page.evaluate(`[location.href, document.referrer, history.length, document.cookie,
      JSON.stringify(localStorage), JSON.stringify(sessionStorage), document.documentElement.innerHTML,
      JSON.stringify(performance.getEntries())].join()`)) as string;
    expect(kept).not.toContain("a-secret-of");
    expect(requests.join()).not.toContain("a-secret-of");
    expect(await context.cookies()).toEqual([]);
    await page.reload();
    expect(await page.getByLabel("Secret").inputValue()).toBe("");
    await page.getByLabel("Secret").fill("a-secret-of-nobody");
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByText("Invalid secret").waitFor();
    await page.getByLabel("Secret").fill("a-secret-of-nobody-with-ÿ-and-💩");
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByText("The secret has characters").waitFor();
    await context.close();
  });

  test("without JavaScript, it says how to ask", async () => {
    const lookup = await surroundings().start("lookup");
    const { page, context } = await open(lookup, { javaScriptEnabled: false });
    await page.getByText("The page needs JavaScript.").waitFor();
    expect(await page.locator("form").isVisible()).toBe(false);
    await context.close();
  });
});
