import { readFileSync } from "node:fs";
import { type Pages, toPage } from "@booking-events/http";

const files = [
  { path: "/activity", file: "../../activity-page/index.html", type: "text/html" },
  { path: "/activity/pages.css", file: "@booking-events/http/assets/pages.css", type: "text/css" },
  { path: "/activity/activity.css", file: "../../activity-page/activity.css", type: "text/css" },
  { path: "/activity/activity.js", file: "../../activity-page/activity.js", type: "text/javascript" },
  { path: "/activity/icon.svg", file: "@booking-events/http/assets/icon.svg", type: "image/svg+xml" },
];

/** @param docsOrigin where the guide is; undefined: beside the page */
export function loadActivityPage(docsOrigin: string | undefined): Pages {
  return new Map(
    files.map(({ path, file, type }) => {
      const bytes = readFileSync(new URL(import.meta.resolve(file)));
      return [path, toPage(type === "text/html" ? linkToDocs(bytes, docsOrigin) : bytes, type)];
    }),
  );
}

function linkToDocs(page: Buffer, docsOrigin: string | undefined): Buffer {
  if (docsOrigin === undefined) return page;
  return Buffer.from(page.toString().replaceAll('href="docs', () => `href="${new URL(docsOrigin).origin}/docs`));
}
