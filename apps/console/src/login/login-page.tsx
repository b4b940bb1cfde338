import type { VNode } from "preact";
import { Blank } from "../page/layout.tsx";

/** The page for whoever has not logged in. */
export function LoginPage({ next, problem }: { next: string; problem?: string | undefined }): VNode {
  return (
    <Blank title="Log in">
      <form method="post" action="/login" class="login">
        <input type="hidden" name="next" value={next} />
        {problem !== undefined && (
          <p class="notice notice-problem" role="alert">
            {problem}
          </p>
        )}
        <label>
          Your name
          <input name="name" autocomplete="username" required maxLength={100} />
          <small>What you do is recorded under it.</small>
        </label>
        <label>
          Password
          <input name="password" type="password" autocomplete="current-password" required maxLength={1_000} />
        </label>
        <button type="submit" class="button button-primary">
          Log in
        </button>
      </form>
    </Blank>
  );
}
