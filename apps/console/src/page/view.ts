import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Role, Visitor } from "../login/roles.ts";

/** What every page is given besides its data. */
export interface View extends Visitor {
  /** Times are shown relative to it. */
  now: Date;
  /** Of the page, for the navigation: without the query. */
  path: string;
  /** What the visitor's last action did, or why it did nothing. */
  notices: readonly Notice[];
  /** Where docs/runbook.md can be read, without a hash. */
  runbookUrl: string | undefined;
}

export type NoticeTone = "done" | "problem" | "remark";

export interface Notice {
  tone: NoticeTone;
  /** Without a guest's value: it stands in a cookie on its way to the next page. */
  text: string;
}

/** Holds the view for all parts of a page, so that none has to hand it on. */
export const ViewContext = createContext<View | null>(null);

export function useView(): View {
  const view = useContext(ViewContext);
  if (view === null) throw new Error("A page is rendered within its view.");
  return view;
}

export function useRole(role: Role): boolean {
  return useView().roles.includes(role);
}
