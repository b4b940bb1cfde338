// A page:    router.get("/partners/:partner", showing(context, async ({ view, operations, params }) => <PartnerPage … />));
// A page that a form asks for, such as one that is recorded: router.post("/…", answering(context, { role: "privacy" }, async ({ form }) => <… />));
// A file: router.post("/…", downloading(context, { role: "operator", name: () => "bookings.csv" }, async ({ params }, write) => …));
// An action: router.post("/partners/:partner/hold", acting(context, { role: "operator", to: ({ params }) => … }, async (request) => "Held."));

import { once } from "node:events";
import { PassThrough } from "node:stream";
import { type ActingContext, isTestPartner, OperationFailure } from "@booking-events/operations";
import { withDeadline } from "@booking-events/runtime";
import type { RouterContext } from "@koa/router";
import type { VNode } from "preact";
import type { ConsoleContext } from "../context.ts";
import type { Role, Visitor } from "../login/roles.ts";
import type { Notice, View } from "../page/view.ts";
import { readForm } from "./read-form.ts";
import { Refusal } from "./refusal.ts";
import { sendPage } from "./send-page.tsx";

const deadlineMs = 10_000;

/** What the middleware before the routes leaves in `ctx.state`. */
export interface PageState {
  visitor: Visitor;
  /** Taken from the cookie, where the last action has put them. */
  notices: Notice[];
  /** Puts notices into the cookie, for the next page. */
  leaveNotices: (notices: readonly Notice[]) => void;
}

export interface PageRequest {
  view: View;
  /** As the visitor. What operations remark is shown on the page, or after the action. */
  operations: ActingContext;
  /** Of the path, decoded. */
  params: Record<string, string>;
  query: URLSearchParams;
  /** Of an action. */
  form: URLSearchParams;
}

type PageContext = RouterContext<PageState>;

/** Answers with a page, within ten seconds. */
export function showing(context: ConsoleContext, render: (request: PageRequest) => Promise<VNode> | VNode) {
  return async (ctx: PageContext): Promise<void> => {
    const notices = [...ctx.state.notices];
    const request = toRequest(context, ctx, { notices, form: new URLSearchParams() });
    sendPage(ctx, await withDeadline(Promise.resolve(render(request)), deadlineMs));
  };
}

/** Answers a form with a page, within ten seconds. To load it again asks again. */
export function answering(
  context: ConsoleContext,
  { role }: { role: Role },
  render: (request: PageRequest) => Promise<VNode>,
) {
  return async (ctx: PageContext): Promise<void> => {
    requireRole(ctx, role);
    const notices: Notice[] = [];
    const request = toRequest(context, ctx, { notices, form: await readForm(ctx) });
    sendPage(ctx, await withDeadline(render(request), deadlineMs));
  };
}

interface Action {
  role: Role;
  /** The page that shows what it did, or why it did nothing. */
  to: (request: PageRequest) => string;
}

/**
 * Does something that a form asks for, and leads to a page that says so.
 *
 * @param act returns what it did, as sentences for the visitor, and another page to show if there is one
 */
export function acting(
  context: ConsoleContext,
  { role, to }: Action,
  act: (request: PageRequest) => Promise<string | { notice: string; to: string }>,
) {
  return async (ctx: PageContext): Promise<void> => {
    requireRole(ctx, role);
    const notices: Notice[] = [];
    const request = toRequest(context, ctx, { notices, form: await readForm(ctx) });
    const done = await withDeadline(act(request), deadlineMs).catch(toProblem);
    const { notice, ...shown } = typeof done === "string" ? { notice: done, to: to(request) } : done;
    ctx.state.leaveNotices([typeof notice === "string" ? { tone: "done", text: notice } : notice, ...notices]);
    ctx.redirect("to" in shown ? shown.to : to(request));
    // "See Other": to load the page again does not act again.
    ctx.status = 303;
  };
}

/**
 * Answers a form with a file, as it is made. What fails before its first line is an error page; later, the download breaks
 * off.
 *
 * @param make writes the file, and waits for each piece
 */
export function downloading(
  context: ConsoleContext,
  { role, name }: { role: Role; name: (request: PageRequest) => string },
  make: (request: PageRequest, write: (text: string) => Promise<void>) => Promise<unknown>,
) {
  return async (ctx: PageContext): Promise<void> => {
    requireRole(ctx, role);
    const request = toRequest(context, ctx, { notices: [], form: await readForm(ctx) });
    const file = new PassThrough();
    const begun = Promise.withResolvers<void>();
    const making = make(request, async (text) => {
      begun.resolve();
      if (!file.destroyed && !file.write(text)) await Promise.race([once(file, "drain"), once(file, "close")]);
      if (file.destroyed) throw new OperationFailure("The download was broken off.");
    });
    await Promise.race([begun.promise, making]);
    making.then(
      () => file.end(),
      (error) => file.destroy(error),
    );
    ctx.attachment(name(request));
    ctx.body = file;
  };
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

function toRequest(
  { operations, runbookUrl }: ConsoleContext,
  ctx: PageContext,
  { notices, form }: { notices: Notice[]; form: URLSearchParams },
): PageRequest {
  const { visitor } = ctx.state;
  const view = { ...visitor, now: operations.now(), path: ctx.path, notices, runbookUrl };
  const notify = (text: string) => void notices.push({ tone: "remark", text });
  const query = ctx.URL.searchParams;
  const partner = ctx.params["partner"] ?? form.get("partner") ?? query.get("partner");
  const given = { ...operations, by: visitor.name, notify };
  const isTest = partner !== null && isTestPartner(given, partner);
  if (isTest && ctx.method === "GET")
    notify(`${partner} is a test partner. Its bookings are apart from all others, and removed after seven days.`);
  return { view, operations: { ...given, isTest }, params: ctx.params, query, form };
}
