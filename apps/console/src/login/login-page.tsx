import type { VNode } from "preact";
import { Blank, Notice } from "../page/layout.tsx";

/** The page for whoever has not logged in. */
interface LoginPageProps {
  /** Where to go then. */
  next: string;
  ways: { password: boolean; openId: boolean };
  problem?: string | undefined;
}

export function LoginPage({ next, ways, problem }: LoginPageProps): VNode {
  return (
    <Blank title="Log in">
      {ways.openId && (
        <p>
          <a class="button button-primary" href={`/login/openid?next=${encodeURIComponent(next)}`}>
            Log in with your organisation
          </a>
        </p>
      )}
      {ways.password && <PasswordForm next={next} problem={problem} />}
      {!ways.openId && !ways.password && (
        <p>You come past the proxy that says who you are. Open the console through it.</p>
      )}
    </Blank>
  );
}

function PasswordForm({ next, problem }: Omit<LoginPageProps, "ways">): VNode {
  return (
    <form method="post" action="/login" class="login">
      <input type="hidden" name="next" value={next} />
      {problem !== undefined && <Notice tone="problem">{problem}</Notice>}
      <label>
        Your name
        <input name="name" autocomplete="username" required maxLength={200} />
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
  );
}
