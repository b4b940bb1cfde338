import { findText } from "@booking-events/operations";
import type { Pages } from "../server/pages.ts";
import { SearchPage } from "./search-page.tsx";

const maxLength = 1_000;

export function addSearchPages(pages: Pages): void {
  pages.show("/search", async ({ operations, given }) => {
    const text = given("q")?.slice(0, maxLength) ?? "";
    return <SearchPage text={text} result={text === "" ? null : await findText(operations, text)} />;
  });
}
