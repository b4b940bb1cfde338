/** What was found out about one thing that could lose data or secrets. */
export interface Check {
  name: string;
  /** `unknown`: this user or this host cannot see it. */
  state: "ok" | "problem" | "unknown";
  detail: string;
  why: string;
  /** A command that corrects it, or what to do; null: nothing has to be done. */
  remedy: string | null;
}

/** What stays the same whatever is found. */
type Subject = Pick<Check, "name" | "why">;

export function ok(subject: Subject, detail: string): Check {
  return { ...subject, state: "ok", detail, remedy: null };
}

export function problem(subject: Subject, detail: string, remedy: string): Check {
  return { ...subject, state: "problem", detail, remedy };
}

export function unknown(subject: Subject, detail: string, remedy: string): Check {
  return { ...subject, state: "unknown", detail, remedy };
}
