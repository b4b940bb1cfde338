// A page:    pages.show("/partners/:partner", async ({ operations, param }) => <PartnerPage … />);
// A page that a form asks for, such as one that is recorded: pages.answer("/…", "privacy", async ({ form }) => <… />);
// A file:    pages.download("/…", () => "bookings.csv", async ({ param }, write) => …);
// An action: pages.act("/partners/:partner/hold", ({ param }) => …, async ({ operations }) => "Held.");

import { once } from "node:events";
import { PassThrough } from "node:stream";
import { type ActingContext, isTestPartner, OperationCancelled, OperationFailure } from "@booking-events/operations";
import { withDeadline } from "@booking-events/runtime";
import type Router from "@koa/router";
import type { RouterContext } from "@koa/router";
import type { VNode } from "preact";
import type { ConsoleContext } from "../context.ts";
import type { Role, Visitor } from "../login/roles.ts";
import type { Notice, View } from "../page/view.ts";
import { PageRequest } from "./page-request.ts";
import { readForm } from "./read-form.ts";
import { Refusal } from "./refusal.ts";
import { sendPage } from "./send-page.tsx";

const deadlineMs = 10_000;
/** Each holds a connection to the database until its last line has been read. Two of four are left for the pages. */
const maxDownloads = 2;
/** For how long a reader may take nothing of an export. PostgreSQL ends a transaction that waits for so long. */
const unreadTimeoutMs = 600_000;
/** The references of a restore are 60,000 characters, of which each may take nine bytes. */
const maxFormBytes = 600 * 1_024;

/** What the middleware before the routes leaves in `ctx.state`. */
export interface PageState {
  visitor: Visitor;
  /** Taken from the cookie, where the last action has put them. */
  notices: Notice[];
  /** Puts notices into the cookie, for the next page. */
  leaveNotices: (notices: readonly Notice[]) => void;
}

type PageContext = RouterContext<PageState>;
type Paths = string | string[];

/** What an action did, as sentences for the visitor, and another page to show if there is one. */
type Done = string | { notice: string; to: string };

/** The pages that need a login, and what can be done there. Each has ten seconds. */
export class Pages {
  readonly router: Router<PageState>;
  readonly context: ConsoleContext;
  readonly #unreadTimeoutMs: number;
  #downloads = 0;

  constructor(router: Router<PageState>, context: ConsoleContext, limits = { unreadTimeoutMs }) {
    this.router = router;
    this.context = context;
    this.#unreadTimeoutMs = limits.unreadTimeoutMs;
  }

  show(path: Paths, render: (request: PageRequest) => Promise<VNode> | VNode): void {
    this.router.get(path, async (ctx) => {
      const request = this.#toRequest(ctx, [...ctx.state.notices], new URLSearchParams());
      sendPage(ctx, await withDeadline(Promise.resolve(render(request)), deadlineMs), request.view);
    });
  }

  /** Answers a form with a page. To load it again asks again. */
  answer(path: Paths, role: Role, render: (request: PageRequest) => Promise<VNode>): void {
    this.#post(path, role, async (ctx, request) => {
      sendPage(ctx, await withDeadline(render(request), deadlineMs), request.view);
    });
  }

  /**
   * Does something that a form asks for, and leads to a page that says so.
   *
   * @param to the page that shows what it did, or why it did nothing
   */
  act(path: string, to: (request: PageRequest) => string, act: (request: PageRequest) => Promise<Done>): void {
    this.#post(path, "operator", async (ctx, request, notices) => {
      const done = await withDeadline(act(request), deadlineMs).catch(toProblem);
      const { notice, ...shown } = typeof done === "string" ? { notice: done } : done;
      ctx.state.leaveNotices([typeof notice === "string" ? { tone: "done", text: notice } : notice, ...notices]);
      ctx.redirect("to" in shown ? shown.to : to(request));
      // "See Other": to load the page again does not act again.
      ctx.status = 303;
    });
  }

  /**
   * Answers a form with a file, as it is made, in however long it takes. What fails before its first line is an error
   * page; later, the download breaks off.
   *
   * @param make writes the file, and waits for each piece
   */
  download(
    path: string,
    name: (request: PageRequest) => string,
    make: (request: PageRequest, write: (text: string) => Promise<void>) => Promise<unknown>,
  ): void {
    this.#post(path, "operator", async (ctx, request) => {
      if (this.#downloads >= maxDownloads)
        throw new OperationFailure(`${maxDownloads} exports run already. Wait until one has ended.`);
      this.#downloads += 1;
      const file = new PassThrough();
      const closed = new Promise((resolve) => file.once("close", resolve));
      const begun = Promise.withResolvers<void>();
      const making = make(request, async (text) => {
        begun.resolve();
        if (!file.destroyed && !file.write(text)) await Promise.race([once(file, "drain"), closed]);
        if (file.destroyed) throw new OperationCancelled("The download was broken off.");
      }).finally(() => {
        this.#downloads -= 1;
      });
      await Promise.race([begun.promise, making]);
      making.then(
        () => file.end(),
        (error) => file.destroy(error),
      );
      ctx.attachment(name(request));
      ctx.body = file;
      // Without a listener, Node closes the connection.
      ctx.res.setTimeout(this.#unreadTimeoutMs);
    });
  }

  /** @param answer also gets the notices that operations add meanwhile */
  #post(
    path: Paths,
    role: Role,
    answer: (ctx: PageContext, request: PageRequest, notices: readonly Notice[]) => Promise<void>,
  ): void {
    this.router.post(path, async (ctx) => {
      requireRole(ctx, role);
      const notices: Notice[] = [];
      await answer(ctx, this.#toRequest(ctx, notices, await readForm(ctx, maxFormBytes)), notices);
    });
  }

  #toRequest(ctx: PageContext, notices: Notice[], form: URLSearchParams): PageRequest {
    const { operations, runbookUrl } = this.context;
    const { visitor } = ctx.state;
    const view: View = { ...visitor, now: operations.now(), path: ctx.path, notices, runbookUrl };
    const notify = (text: string) => void notices.push({ tone: "remark", text });
    const query = ctx.URL.searchParams;
    const partner = ctx.params["partner"] ?? (form.get("partner") ?? query.get("partner"))?.trim();
    const acting: ActingContext = { ...operations, by: visitor.name, notify };
    const isTest = partner !== undefined && isTestPartner(acting, partner);
    if (isTest && ctx.method === "GET")
      notify(`${partner} is a test partner. Its bookings are apart from all others, and removed after seven days.`);
    return new PageRequest({ view, operations: { ...acting, isTest }, params: ctx.params, query, form });
  }
}

function requireRole({ state: { visitor } }: PageContext, role: Role): void {
  if (visitor.roles.includes(role)) return;
  const yours = visitor.roles.join(", ") || "none";
  throw new Refusal(403, "Not allowed", `Only who has the role ${role} may do this. You have: ${yours}.`);
}

function toProblem(error: unknown): { notice: Notice } {
  if (error instanceof OperationFailure) return { notice: { tone: "problem", text: error.message } };
  throw error;
}
