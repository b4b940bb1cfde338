import { createHash, timingSafeEqual } from "node:crypto";
import type Router from "@koa/router";
import type { Context } from "koa";
import { readForm } from "../server/read-form.ts";
import { Refusal } from "../server/refusal.ts";
import { sendPage } from "../server/send-page.tsx";
import type { Logins } from "./create-logins.ts";
import { toLocalPath } from "./local-path.ts";
import { LoginPage } from "./login-page.tsx";
import { readName } from "./read-name.ts";
import { roles } from "./roles.ts";

/** Anybody may post it. */
const maxFormBytes = 64 * 1_024;

/** Logging in and out, which needs no login. */
export function addLoginRoutes(router: Router, logins: Logins): void {
  router.get("/login", (ctx) => {
    sendPage(ctx, <LoginPage next={toLocalPath(ctx.URL.searchParams.get("next"))} ways={waysOf(logins)} />);
  });
  router.post("/login", (ctx) => logIn(ctx, logins));
  router.post("/logout", (ctx) => {
    logins.sessions.end(ctx);
    ctx.redirect("/login");
    ctx.status = 303;
  });
}

function waysOf({ password, openId }: Logins) {
  return { password: password !== undefined, openId: openId !== undefined };
}

async function logIn(ctx: Context, logins: Logins): Promise<void> {
  const { sessions, tries, password } = logins;
  if (password === undefined) throw new Refusal(404, "No such page", "There is no login by password.");
  const form = await readForm(ctx, maxFormBytes);
  const next = toLocalPath(form.get("next"));
  const refuse = (status: number, problem: string) => {
    sendPage(ctx, <LoginPage next={next} ways={waysOf(logins)} problem={problem} />);
    ctx.status = status;
  };
  if (!tries.mayTry(ctx.ip)) return refuse(429, "Too many wrong passwords. Try again in a minute.");
  const name = readName(form.get("name")?.trim());
  if (name === undefined) return refuse(422, "Enter your name: up to 200 characters that can be seen.");
  if (!isSame(form.get("password") ?? "", password)) {
    tries.countWrong(ctx.ip);
    return refuse(403, "The password is wrong.");
  }
  sessions.begin(ctx, { name, roles });
  ctx.redirect(next);
  ctx.status = 303;
}

/** In a time that says nothing of either. */
function isSame(given: string, wanted: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(wanted));
}
