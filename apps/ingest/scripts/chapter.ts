import { type Html, html } from "./html.ts";

/** A page with headings: what it shows, what the contents list of it, and what the search finds on it. */
export interface Chapter {
  body: Html;
  contents: Entry[];
  found: Found[];
}

/** A heading in the contents, with those below it. */
export interface Entry {
  id: string;
  title: Html;
  below: Entry[];
}

/** What is found, where that is, its address from the root of the host, and more words to find it by. */
export type Found = [title: string, where: string, href: string, text: string];

/** A heading that one can link to, of which one sees that. */
export function renderHeading(depth: number, id: string, title: Html | string): Html {
  const level = `h${depth}`;
  return html`<${level}><a class="anchor" href="#${id}">${title}</a></${level}>\n`;
}

/** Code stands beside the prose that it belongs to, and below it where there is no room. */
export function renderRow(prose: Html[], code: Html[], after: Html[] = []): Html {
  const side = code.length === 0 ? html`` : html`<div class="side">\n${code}</div>\n`;
  const rest = after.length === 0 ? html`` : html`<div class="prose after">\n${after}</div>\n`;
  const first = prose.length === 0 ? html`` : html`<div class="prose">\n${prose}</div>\n`;
  return html`<div class="row">\n${first}${side}${rest}</div>\n`;
}
