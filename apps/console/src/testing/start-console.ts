import { randomUUID } from "node:crypto";
import type { AddressInfo } from "node:net";
import { waitFor } from "@booking-events/harness";
import { createLogger } from "@booking-events/runtime";
import { afterAll, beforeAll } from "vitest";
import { createConsole, readSettings } from "../create-console.ts";
import { toKey } from "../login/create-logins.ts";
import type { Visitor } from "../login/roles.ts";
import { seal } from "../login/seal.ts";
import { createConsoleServer } from "../server/create-console-server.ts";

/** Of every console in tests. */
export const password = "a-password-of-the-console-tests";

const sessionKey = "a-key-for-the-logins-of-the-console-tests";

/** The page's answer, without following a redirect. */
export interface Page {
  status: number;
  headers: Headers;
  html: string;
  /** Where it leads to. Null: it is no redirect. */
  location: string | null;
}

/** A visitor with a browser: it keeps cookies, and says where its posts come from. */
export interface Browser {
  get(path: string, headers?: Record<string, string>): Promise<Page>;
  post(path: string, form?: Record<string, string>, headers?: Record<string, string>): Promise<Page>;
  /** As {@link post}, and then the page that it leads to; if that is a task's, once it has ended. */
  submit(path: string, form?: Record<string, string>): Promise<Page>;
  /** An answer that does not end by itself. */
  open(path: string, signal: AbortSignal): Promise<Response>;
}

export interface TestConsole {
  url: string;
  /** A visitor who has not logged in. */
  visit(): Browser;
  /** One who has logged in by the password, so in all roles. */
  logIn(name?: string): Promise<Browser>;
  /** One who has logged in some other way, with these roles. */
  visitAs(visitor: Visitor): Browser;
}

/**
 * Starts the console in this process for the tests of the file. It needs real services: see `useTestDatabase`.
 *
 * @param environment called before the first test. Unless it has another login, there is one by {@link password}
 * @param options.port called then, too. Without it, any free one will do
 */
export function useConsole(
  environment: () => Record<string, string>,
  { port = () => 0 }: { port?: () => number } = {},
): TestConsole {
  const stopping = new AbortController();
  let url = "";
  let key: Buffer;
  let stop = async () => {};
  beforeAll(async () => {
    const wanted: Record<string, string> = { CONSOLE_SESSION_KEY: sessionKey, ...environment() };
    const given = "CONSOLE_OIDC_ISSUER" in wanted ? wanted : { CONSOLE_PASSWORD: password, ...wanted };
    const logger = createLogger({ name: "console", level: "silent" });
    const settings = readSettings(given);
    key = toKey(settings);
    const { app, close } = createConsole(settings, given, { logger, stopping: stopping.signal });
    const server = createConsoleServer(app.callback());
    await new Promise<void>((resolve) => server.listen(port(), "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    stop = async () => {
      stopping.abort();
      server.closeAllConnections();
      server.close();
      await close();
    };
  });
  afterAll(() => stop());
  const visit = () => createBrowser(() => url);
  return {
    get url() {
      return url;
    },
    visit,
    visitAs(visitor) {
      const session = { ...visitor, id: randomUUID(), endsAtMs: Date.now() + 60_000 };
      return createBrowser(() => url, { console: seal(key, "console", session) });
    },
    async logIn(name = "Ada") {
      const browser = visit();
      const { status } = await browser.post("/login", { name, password });
      if (status !== 303) throw new Error(`The login answers ${status}.`);
      return browser;
    },
  };
}

function createBrowser(url: () => string, kept: Record<string, string> = {}): Browser {
  const cookies = new Map(Object.entries(kept));
  function withCookies(headers: HeadersInit | undefined): Record<string, string> {
    const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
    return { ...(headers as Record<string, string>), ...(cookie === "" ? {} : { cookie }) };
  }
  async function ask(path: string, init: RequestInit): Promise<Page> {
    const headers = withCookies(init.headers);
    const answer = await fetch(`${url()}${path}`, { ...init, headers, redirect: "manual" });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "") cookies.delete(name);
      else cookies.set(name, value);
    }
    const location = answer.headers.get("location");
    return { status: answer.status, headers: answer.headers, html: await readText(answer), location };
  }
  const get: Browser["get"] = (path, headers = {}) => ask(path, { headers });
  const post: Browser["post"] = (path, form = {}, headers = { "Sec-Fetch-Site": "same-origin" }) =>
    ask(path, { method: "POST", body: new URLSearchParams(form), headers });
  return {
    get,
    post,
    open: (path, signal) => fetch(`${url()}${path}`, { headers: withCookies({}), signal }),
    async submit(path, form) {
      const answer = await post(path, form);
      let page = answer;
      const { location } = answer;
      if (location !== null)
        await waitFor(async () => {
          page = await get(location);
          return !page.html.includes("Load again");
        });
      return page;
    },
  };
}

/** Of a part of a page that is sent again and again: what comes first. */
async function readText(answer: Response): Promise<string> {
  if (answer.headers.get("content-type")?.startsWith("text/event-stream") !== true) return answer.text();
  const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return first?.value ?? "";
}
