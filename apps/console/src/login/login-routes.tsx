import { createHash, timingSafeEqual } from "node:crypto";
import type Router from "@koa/router";
import type { Context } from "koa";
import { readForm } from "../server/read-form.ts";
import { Refusal } from "../server/refusal.ts";
import { sendPage } from "../server/send-page.tsx";
import type { TryLimit } from "./limit-tries.ts";
import { toLocalPath } from "./local-path.ts";
import { LoginPage } from "./login-page.tsx";
import { roles } from "./roles.ts";
import type { Sessions } from "./session.ts";

export interface Logins {
  sessions: Sessions;
  tries: TryLimit;
  /** Whoever knows it may do everything. Undefined: there is no login by password. */
  password: string | undefined;
}

/** Logging in and out, which needs no login. */
export function addLoginRoutes(router: Router, logins: Logins): void {
  router.get("/login", (ctx) => {
    sendPage(ctx, <LoginPage next={toLocalPath(ctx.URL.searchParams.get("next"))} />);
  });
  router.post("/login", (ctx) => logIn(ctx, logins));
  router.post("/logout", (ctx) => {
    logins.sessions.end(ctx);
    ctx.redirect("/login");
    ctx.status = 303;
  });
}

async function logIn(ctx: Context, { sessions, tries, password }: Logins): Promise<void> {
  if (password === undefined) throw new Refusal(404, "No such page", "There is no login by password.");
  const form = await readForm(ctx);
  const next = toLocalPath(form.get("next"));
  const refuse = (status: number, problem: string) => {
    sendPage(ctx, <LoginPage next={next} problem={problem} />);
    ctx.status = status;
  };
  if (!tries.mayTry(ctx.ip)) return refuse(429, "Too many wrong passwords. Try again in a minute.");
  const name = (form.get("name") ?? "").trim().slice(0, 100);
  if (name === "") return refuse(422, "Enter your name.");
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
