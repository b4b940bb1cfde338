import { readdirSync, readFileSync } from "node:fs";
import { type Pages, toPage } from "@booking-events/http";

const files = [
  { path: "/openapi.json", file: "@booking-events/schema/openapi.json", type: "application/json" },
  { path: "/docs", file: "../../docs/index.html", type: "text/html" },
  { path: "/docs/reference", file: "../../docs/reference.html", type: "text/html" },
  { path: "/docs/try-it", file: "../../docs/try-it.html", type: "text/html" },
  { path: "/docs/pages.css", file: "@booking-events/http/assets/pages.css", type: "text/css" },
  { path: "/docs/docs.css", file: "../../docs/docs.css", type: "text/css" },
  { path: "/docs/docs.js", file: "../../docs/docs.js", type: "text/javascript" },
  { path: "/docs/try-it.js", file: "../../docs/try-it.js", type: "text/javascript" },
  { path: "/docs/search.json", file: "../../docs/search.json", type: "application/json" },
  { path: "/docs/icon.svg", file: "@booking-events/http/assets/icon.svg", type: "image/svg+xml" },
  // Browsers ask for it beside a page without an icon of its own, such as openapi.json.
  { path: "/favicon.ico", file: "@booking-events/http/assets/icon.svg", type: "image/svg+xml" },
];

/** What partners copy into their programs. The image has it as far from this file as the repository. */
const clients = new URL("../../../../docs/clients/", import.meta.url);

/** @param lookupUrl where the pages send partners' questions; undefined: to their own origin */
export function loadPages(lookupUrl?: string): Pages {
  const pages = files.map(({ path, file, type }) => ({ path, url: new URL(import.meta.resolve(file)), type }));
  const downloads = readdirSync(clients, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => ({ path: `/docs/clients/${name}`, url: new URL(name, clients), type: "text/plain" }));
  const origin = lookupUrl === undefined ? undefined : new URL(lookupUrl).origin;
  return new Map(
    [...pages, ...downloads].map(({ path, url, type }) => {
      const content = readFileSync(url);
      const bytes = type === "text/html" ? sayWhereLookupIs(content, lookupUrl) : content;
      return [path, toPage(bytes, type, origin)];
    }),
  );
}

function sayWhereLookupIs(page: Buffer, lookupUrl = ""): Buffer {
  const address = lookupUrl.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  return Buffer.from(
    page.toString().replace('name="lookup-url" content=""', () => `name="lookup-url" content="${address}"`),
  );
}
