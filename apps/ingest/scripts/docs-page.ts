import type { Entry } from "./chapter.ts";
import { type Html, html } from "./html.ts";

type PageName = "guide" | "reference" | "try-it";

export interface DocsPage {
  page: PageName;
  title: string;
  /** Of the interface. */
  version: string;
  /** What the contents list, on each page. */
  chapters: { guide: Entry[]; reference: Entry[] };
  body: Html;
}

const pages = [
  { page: "guide", title: "Guide", path: "docs" },
  { page: "reference", title: "Reference", path: "docs/reference" },
  { page: "try-it", title: "Try it", path: "docs/try-it" },
] as const;

/** The frame of a page of `/docs`. It is complete without JavaScript, except for the search and the form of "Try it". */
export function renderPage({ page, title, version, chapters, body }: DocsPage): string {
  const root = page === "guide" ? "" : "../";
  const script = page === "try-it" ? "try-it" : "docs";
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="color-scheme" content="light dark">
<meta name="lookup-url" content="">
<title>${title} · Booking events</title>
<link rel="icon" href="${root}docs/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="${root}docs/pages.css">
<link rel="stylesheet" href="${root}docs/docs.css">
<script type="module" src="${root}docs/${script}.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<button class="button menu-button" type="button" popovertarget="contents">Contents</button>
<a class="brand" href="${root}docs" aria-label="Booking events"><img src="${root}docs/icon.svg" alt="" width="28" height="28"><span>Booking events</span></a>
<nav aria-label="Pages">${pages.map((each) => html`<a href="${root}${each.path}"${markCurrent(each.page === page)}>${each.title}</a>`)}</nav>
<button class="button search-button" type="button" id="search-button" hidden><span>Search</span><kbd>/</kbd></button>
</header>
<div class="frame">
${renderContents(page, root, chapters)}
<main id="content" tabindex="-1" class="page-${page}">
${body}
<footer>
<p class="small soft">Booking events ${version} · <a href="${root}openapi.json">OpenAPI 3.1</a></p>
</footer>
</main>
</div>
${renderSearch()}</body>
</html>
`.text;
}

function markCurrent(isCurrent: boolean): Html {
  return isCurrent ? html` aria-current="page"` : html``;
}

/** A list at the side, and where there is no room a popover, which needs no JavaScript. */
function renderContents(page: PageName, root: string, chapters: DocsPage["chapters"]): Html {
  const groups = pages.map(({ page: name, title, path }) => {
    const entries = name === "try-it" ? [] : chapters[name];
    const link = html`<a class="chapter" href="${root}${path}"${markCurrent(name === page)}>${title}</a>`;
    return html`<li>${link}${renderEntries(entries, name === page ? "" : `${root}${path}`, name === page)}</li>\n`;
  });
  return html`<nav id="contents" popover aria-label="Contents">
<ul>
${groups}</ul>
</nav>`;
}

function renderEntries(entries: Entry[], path: string, isCurrent: boolean): Html {
  if (entries.length === 0) return html``;
  const items = entries.map(
    ({ id, title, below }) =>
      html`<li><a href="${path}#${id}">${title}</a>${isCurrent ? renderEntries(below, path, isCurrent) : html``}</li>\n`,
  );
  return html`\n<ul>\n${items}</ul>`;
}

function renderSearch(): Html {
  return html`<dialog id="search" aria-label="Search">
<form method="dialog">
<label class="hidden" for="search-words">Search for headings, fields, statuses and codes</label>
<input id="search-words" type="search" placeholder="Search for headings, fields, statuses and codes" autocomplete="off" spellcheck="false">
<button class="button" type="submit">Close</button>
</form>
<p class="small soft" role="status" id="search-status"></p>
<ul id="search-results"></ul>
</dialog>
`;
}
