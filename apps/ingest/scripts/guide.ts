import { Marked, type Token, type Tokens } from "marked";
import { type Chapter, type Entry, type Found, renderHeading, renderRow } from "./chapter.ts";
import { renderClients } from "./clients.ts";
import { renderAnswer, renderCode, renderTabs } from "./code.ts";
import { createGuideRenderer, toAnchor } from "./guide-renderer.ts";
import { Html, html } from "./html.ts";
import { findAnchors } from "./openapi.ts";
import type { Sources } from "./sources.ts";

interface Section {
  id: string;
  depth: number;
  title: string;
  rows: Row[];
  words: string[];
}

interface Row {
  prose: Html[];
  code: Html[];
  isWide: boolean;
}

/** A table with more text than this is as wide as the page. */
const wideTableLength = 2_500;

/** Renders the partner guide as a page: `docs/partner-guide.md` is its only source. */
export function renderGuide(sources: Sources): Chapter {
  const reader = new GuideReader(sources);
  return reader.read(sources.guide);
}

class GuideReader {
  readonly #sources: Sources;
  readonly #sections: Section[] = [];
  readonly #codes: Found[] = [];
  readonly #marked: Marked;

  constructor(sources: Sources) {
    this.#sources = sources;
    const renderer = createGuideRenderer(findAnchors(sources.openApi), (code) => this.#codes.push(code));
    this.#marked = new Marked({ renderer });
  }

  read(markdown: string): Chapter {
    for (const token of this.#marked.lexer(markdown)) this.#readToken(token);
    const found = this.#sections.map(({ id, title, words }): Found => [title, "Guide", `docs#${id}`, words.join(" ")]);
    return {
      body: html`${this.#sections.map(renderSection)}`,
      contents: listContents(this.#sections),
      found: [...found, ...this.#codes],
    };
  }

  #readToken(token: Token): void {
    const mark = /^<!-- ([a-z]+)(?:: (\S+))? -->\s*$/.exec(token.raw);
    if (mark !== null) this.#readMark(mark);
    else if (token.type === "heading") this.#startSection(token as Tokens.Heading);
    else if (token.type === "code") this.#row(true).code.push(renderFence(token as Tokens.Code));
    else if (token.type !== "space") this.#readProse(token);
  }

  /** A comment in the guide, where the page has more than the guide. */
  #readMark([raw, name, argument = ""]: RegExpExecArray): void {
    if (name === "fields") {
      this.#row(false).prose.push(linkToFields);
    } else if (name === "samples") {
      const samples = this.#sources.samples.get(argument);
      if (samples === undefined) throw new Error(`The guide names the samples ${argument}, which do not exist.`);
      this.#row(true).code.push(renderTabs(`sample-${argument}`, argument, samples));
    } else if (name === "clients") {
      this.#addWide(renderClients(this.#sources.clients, ""));
    } else throw new Error(`The guide has the mark ${raw.trim()}, which the page does not know.`);
  }

  #startSection({ depth, text, tokens }: Tokens.Heading): void {
    const title = text.replaceAll("`", "");
    this.#sections.push({ id: toAnchor(title), depth, title, rows: [], words: [] });
    if (tokens.length === 0) throw new Error("The guide has an empty heading.");
  }

  #readProse(token: Token): void {
    const rendered = new Html(this.#marked.parser([token]));
    this.#section().words.push(toWords(rendered));
    if (token.type === "table" && token.raw.length > wideTableLength) this.#addWide(rendered);
    else this.#row(false).prose.push(rendered);
  }

  #addWide(content: Html): void {
    this.#section().rows.push({ prose: [content], code: [], isWide: true });
  }

  /** Prose after code begins a row, since the code belongs to what stands before it. */
  #row(isCode: boolean): Row {
    const { rows } = this.#section();
    const last = rows.at(-1);
    if (last !== undefined && !last.isWide && (isCode || last.code.length === 0)) return last;
    const row: Row = { prose: [], code: [], isWide: false };
    rows.push(row);
    return row;
  }

  #section(): Section {
    const section = this.#sections.at(-1);
    if (section === undefined) throw new Error("The guide does not begin with a heading.");
    return section;
  }
}

const linkToFields = html`<p><a class="button" href="docs/reference#fields">All fields, with examples</a></p>\n`;

function toWords({ text }: Html): string {
  const plain = text.replaceAll(/<[^>]*>/g, " ").replaceAll(/\s+/g, " ");
  return plain
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll(/&#39;/g, "'")
    .replaceAll("&amp;", "&")
    .trim();
}

/** The words after the language are the title: ```json What you get. */
function renderFence({ lang = "", text }: Tokens.Code): Html {
  const [, language = "", title = ""] = /^(\S*)\s*(.*)$/.exec(lang) ?? [];
  if (language === "sh") return renderCode(title || "Shell", text, "bash");
  return renderAnswer(title || "Answer", text);
}

function renderSection({ id, depth, title, rows }: Section): Html {
  return html`<section id="${id}" class="part depth-${depth}">
${depth === 1 ? html`<h1>${title}</h1>\n` : renderHeading(depth, id, title)}${joinLastRow(rows).map(
  ({ prose, code, after, isWide }) =>
    isWide ? html`<div class="wide">\n${prose}</div>\n` : renderRow(prose, code, after),
)}</section>
`;
}

/** What follows the last code stands beside it, too. Otherwise there would be a hole. */
function joinLastRow(rows: Row[]): (Row & { after: Html[] })[] {
  const all = rows.map((row) => ({ ...row, after: [] as Html[] }));
  const [beforeLast, last] = all.slice(-2);
  if (beforeLast === undefined || last === undefined || beforeLast.isWide || last.isWide) return all;
  if (last.code.length > 0 || beforeLast.code.length === 0) return all;
  return [...all.slice(0, -2), { ...beforeLast, after: last.prose }];
}

function listContents(sections: Section[]): Entry[] {
  const entries: Entry[] = [];
  for (const { id, depth, title } of sections) {
    const entry = { id, title: html`${title}`, below: [] };
    if (depth === 2) entries.push(entry);
    else if (depth > 2) entries.at(-1)?.below.push(entry);
  }
  return entries;
}
