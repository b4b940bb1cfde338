import type { Visitor } from "../login/roles.ts";

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

export interface Notice {
  tone: "done" | "problem" | "remark";
  /** Without a guest's value: it stands in a cookie on its way to the next page. */
  text: string;
}
