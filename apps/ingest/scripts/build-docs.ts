import { renderPage } from "./docs-page.ts";
import { renderGuide } from "./guide.ts";
import { renderReference } from "./reference.ts";
import { readSources, type Sources } from "./sources.ts";
import { renderTryIt } from "./try-it.ts";

/** Renders the pages of `/docs` and their index for the search. The keys are the names of the files. */
export function buildDocs(sources: Sources = readSources()): Record<string, string> {
  const guide = renderGuide(sources);
  const reference = renderReference(sources);
  const found = [...guide.found, ...reference.found];
  const { version } = sources.openApi.info;
  const chapters = { guide: guide.contents, reference: reference.contents };
  return {
    "index.html": renderPage({ page: "guide", title: "Guide", version, chapters, body: guide.body }),
    "reference.html": renderPage({ page: "reference", title: "Reference", version, chapters, body: reference.body }),
    "try-it.html": renderPage({ page: "try-it", title: "Try it", version, chapters, body: renderTryIt() }),
    // One in each line, so that Git can merge changes of several.
    "search.json": `[\n${found.map((each) => JSON.stringify(each)).join(",\n")}\n]\n`,
  };
}
