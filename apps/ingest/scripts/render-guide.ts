import { Marked, type Tokens } from "marked";
import { Html, html } from "./html.ts";

export interface Guide {
  body: Html;
  /** The headings of the second level. */
  sections: { id: string; title: string }[];
}

const documentInRepository = "../packages/schema/openapi.json";
const fieldsInGuide = /<!-- fields -->.*?<!-- \/fields -->/s;

/**
 * Renders the partner guide as part of the page.
 *
 * @param fields stands in place of the guide's table of fields, which says less
 */
export function renderGuide(markdown: string, fields: Html): Guide {
  const sections: Guide["sections"] = [];
  const marked = new Marked({
    renderer: {
      heading({ depth, text, tokens }) {
        const id = toAnchor(text);
        if (depth === 2) sections.push({ id, title: text });
        return `<h${depth} id="${id}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
      },
      link({ href, tokens }) {
        return html`<a href="${toPageLink(href)}">${new Html(this.parser.parseInline(tokens))}</a>`.text;
      },
      code({ text }: Tokens.Code) {
        return renderCode(text).text;
      },
      table(token) {
        // Where the window is narrow, the table scrolls, also by keyboard.
        const rows = [token.header, ...token.rows].map((row, index) => {
          const cell = index === 0 ? "th" : "td";
          return `<tr>${row.map(({ tokens }) => `<${cell}>${this.parser.parseInline(tokens)}</${cell}>`).join("")}</tr>`;
        });
        return `<div class="wide" tabindex="0"><table>\n${rows.join("\n")}\n</table></div>\n`;
      },
    },
  });
  const [, withoutTitle = ""] = /^# .*?\n(.*)$/s.exec(markdown) ?? [];
  if (!fieldsInGuide.test(withoutTitle)) throw new Error("The guide does not mark its table of fields.");
  const [before = "", after = ""] = withoutTitle.split(fieldsInGuide);
  const render = (part: string) => new Html(marked.parse(part, { async: false }));
  return { body: html`${render(before)}${fields}${render(after)}`, sections };
}

/** As GitHub generates them, so that the guide's links work in both places. */
function toAnchor(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, "")
    .replaceAll(" ", "-");
}

/** @throws for a link that leads into the repository, which readers of the page do not have */
function toPageLink(href: string): string {
  if (href === documentInRepository) return "openapi.json";
  if (href.startsWith("#") || href.startsWith("https://")) return href;
  throw new Error(`The guide links to ${href}, which the page cannot reach.`);
}

export function renderCode(text: string): Html {
  return html`<pre><code>${text}</code></pre>\n`;
}
