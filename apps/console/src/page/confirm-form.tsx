// <ConfirmForm action="/partners/acme/hold" verb="Hold" fields={{ eventId }} isDangerous> What it does, and how to undo it. </ConfirmForm>
// A button that opens what it would do, and the button that does it. Whoever lacks the role sees nothing.
// Further inputs stand among the children: <label>Reason <input name="reason" required /></label>
import type { ComponentChildren, VNode } from "preact";
import type { Role } from "../login/roles.ts";
import { useRole } from "./view.ts";

interface ConfirmFormProps {
  /** Default: operator. */
  role?: Role;
  /** The path that it posts to. */
  action: string;
  /** On the buttons. */
  verb: string;
  /** What it posts besides. */
  fields?: Record<string, string>;
  /** It cannot be undone. */
  isDangerous?: boolean;
  children: ComponentChildren;
}

export function ConfirmForm({
  role = "operator",
  action,
  verb,
  fields = {},
  isDangerous = false,
  children,
}: ConfirmFormProps): VNode | null {
  if (!useRole(role)) return null;
  return (
    <details class="confirm">
      <summary class={isDangerous ? "button button-danger" : "button"}>{verb}…</summary>
      <form method="post" action={action}>
        {Object.entries(fields).map(([name, value]) => (
          <input type="hidden" name={name} value={value} />
        ))}
        <div class="confirm-text">{children}</div>
        <button type="submit" class={isDangerous ? "button button-danger" : "button button-primary"}>
          {verb}
        </button>
      </form>
    </details>
  );
}
