import { readdirSync, readFileSync } from "node:fs";
import { type Pages, toPage } from "@booking-events/http";

const files = [
  { path: "/openapi.json", file: "@booking-events/schema/openapi.json", type: "application/json" },
  { path: "/docs", file: "../../reference-page/index.html", type: "text/html" },
  { path: "/docs/style.css", file: "../../reference-page/style.css", type: "text/css" },
  { path: "/docs/try-out.js", file: "../../reference-page/try-out.js", type: "text/javascript" },
  { path: "/docs/icon.svg", file: "@booking-events/http/assets/icon.svg", type: "image/svg+xml" },
];

/** What partners copy into their programs. The image has it as far from this file as the repository. */
const clients = new URL("../../../../docs/clients/", import.meta.url);

export function loadPages(): Pages {
  const pages = files.map(({ path, file, type }) => ({ path, url: new URL(import.meta.resolve(file)), type }));
  const downloads = readdirSync(clients, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => ({ path: `/docs/clients/${name}`, url: new URL(name, clients), type: "text/plain" }));
  return new Map([...pages, ...downloads].map(({ path, url, type }) => [path, toPage(readFileSync(url), type)]));
}
