import type { RendererObject, Tokens } from "marked";
import type { Found } from "./chapter.ts";
import { Html, html } from "./html.ts";

const documentInRepository = "../packages/schema/openapi.json";

/**
 * Renders what stands between the guide's headings and blocks of code. A name that the reference explains is a link.
 *
 * @param anchors where that is
 * @param addCode called with each code of a violation or a warning, whose place is the guide's table of them
 */
export function createGuideRenderer(anchors: Map<string, string>, addCode: (code: Found) => void): RendererObject {
  let isInLink = false;
  return {
    link({ href, tokens }) {
      isInLink = true;
      const text = new Html(this.parser.parseInline(tokens));
      isInLink = false;
      return html`<a href="${toPageLink(href)}">${text}</a>`.text;
    },
    strong({ text, tokens }) {
      const statuses = /^\d{3}(, \d{3})*$/.test(text) ? text.split(", ") : [];
      const content = statuses.length === 0 ? new Html(this.parser.parseInline(tokens)) : linkStatuses(statuses);
      return html`<strong>${content}</strong>`.text;
    },
    codespan({ text }) {
      const anchor = isInLink ? undefined : anchors.get(text);
      const code = html`<code>${text}</code>`;
      return (anchor === undefined ? code : html`<a class="name" href="docs/reference#${anchor}">${code}</a>`).text;
    },
    table({ header, rows }) {
      const labels = header.map(({ text }) => text);
      const prefix = labels[0]?.toLowerCase() ?? "";
      const hasCodes = ["violation", "warning"].includes(prefix);
      const heads = labels.map((label) => html`<th scope="col">${label}</th>`);
      const lines = rows.map(([first, ...rest]) => {
        const codes = hasCodes ? listCodespans(first) : [];
        for (const code of codes)
          addCode([code, labels[0] ?? "", `docs#${prefix}-${code}`, rest.map(({ text }) => text).join(". ")]);
        const name = hasCodes ? placeCodes(codes, prefix) : new Html(this.parser.parseInline(first?.tokens ?? []));
        const cells = rest.map(
          ({ tokens }, index) =>
            html`<td data-label="${labels[index + 1] ?? ""}">${new Html(this.parser.parseInline(tokens))}</td>`,
        );
        return html`<tr><th scope="row">${name}</th>${cells}</tr>\n`;
      });
      return html`<div class="table"><table>
<thead><tr>${heads}</tr></thead>
<tbody>
${lines}</tbody>
</table></div>
`.text;
    },
  };
}

/** As GitHub generates them, so that the guide's links work in both places. */
export function toAnchor(title: string): string {
  return title
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, "")
    .replaceAll(" ", "-");
}

/** @throws for a link that leads into the repository, which readers of the page do not have */
function toPageLink(href: string): string {
  if (href === documentInRepository) return "openapi.json";
  if (href.startsWith("clients/")) return `docs/${href}`;
  if (href.startsWith("#") || href.startsWith("https://")) return href;
  throw new Error(`The guide links to ${href}, which the page cannot reach.`);
}

function linkStatuses(statuses: string[]): Html {
  return html`${statuses.map((status, index) => html`${index === 0 ? "" : ", "}<a href="docs/reference#status-${status}">${status}</a>`)}`;
}

function listCodespans(cell: Tokens.TableCell | undefined): string[] {
  return Array.from(cell?.text.matchAll(/`([^`]+)`/g) ?? [], ([, code = ""]) => code);
}

function placeCodes(codes: string[], prefix: string): Html {
  return html`${codes.map(
    (code, index) =>
      html`${index === 0 ? "" : ", "}<a class="anchor" id="${prefix}-${code}" href="#${prefix}-${code}"><code>${code}</code></a>`,
  )}`;
}
