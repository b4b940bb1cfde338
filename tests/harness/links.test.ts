import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";
import { findFiles } from "./find-files.ts";

const root = join(import.meta.dirname, "../..");
const pages = findFiles("**/*.md");

/** Without code, in which a shell comment looks like a heading, and brackets look like a link. */
const readProse = (path: string) => readFileSync(path, "utf8").replaceAll(/^ *```.*?^ *```/gms, "");

/** As GitHub generates them: https://github.com/gjtorikian/html-pipeline/blob/v2.14.3/lib/html/pipeline/toc_filter.rb */
function readAnchors(path: string): string[] {
  const titles = [...readProse(path).matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) => title);
  return titles.map((title) =>
    title
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, "")
      .replaceAll(" ", "-"),
  );
}

function describeProblem(page: string, link: string): string | undefined {
  const [path = "", anchor] = link.split("#");
  const target = path === "" ? join(root, page) : join(root, dirname(page), path);
  if (relative(root, target).startsWith("..")) return `${link} leads out of the repository`;
  if (!existsSync(target)) return `${link} leads to no file`;
  if (anchor !== undefined && !readAnchors(target).includes(anchor)) return `${link} leads to no heading`;
  return undefined;
}

test("there are pages and links to check", () => {
  expect(pages).toContain("README.md");
  expect(describeProblem("README.md", "docs/none.md")).toBe("docs/none.md leads to no file");
  expect(describeProblem("README.md", "#none")).toBe("#none leads to no heading");
  expect(describeProblem("README.md", "../elsewhere")).toBe("../elsewhere leads out of the repository");
});

test.each(pages)("every link in %s leads to a file, and to a heading in it", (page) => {
  const links = [...readProse(join(root, page)).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)];
  expect(links.flatMap(([, link = ""]) => describeProblem(page, link) ?? [])).toEqual([]);
});
