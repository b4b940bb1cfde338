import { readFileSync } from "node:fs";
import { buildReferencePage } from "./reference-page.ts";

export function buildCurrentPage(): string {
  const openApi = readFileSync(new URL(import.meta.resolve("@booking-events/schema/openapi.json")), "utf8");
  const guide = readFileSync(new URL("../../../docs/partner-guide.md", import.meta.url), "utf8");
  return buildReferencePage(JSON.parse(openApi), guide);
}
