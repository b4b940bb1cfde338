import hljs from "highlight.js/lib/core";
import bash from "highlight.js/lib/languages/bash";
import csharp from "highlight.js/lib/languages/csharp";
import java from "highlight.js/lib/languages/java";
import json from "highlight.js/lib/languages/json";
import php from "highlight.js/lib/languages/php";
import python from "highlight.js/lib/languages/python";
import typescript from "highlight.js/lib/languages/typescript";
import { Html, html } from "./html.ts";

const languages = { bash, csharp, java, json, php, python, typescript };
for (const [name, grammar] of Object.entries(languages)) hljs.registerLanguage(name, grammar);

export type Language = keyof typeof languages;

/** A piece of code in one of the languages that readers choose from. */
export interface Sample {
  /** What the page keeps as the reader's choice. */
  id: string;
  name: string;
  language: Language;
  text: string;
}

/** A block of code with its colours, and a title above it. */
export function renderCode(title: string, text: string, language?: Language): Html {
  return renderFigure(language === "bash" ? "code shell" : "code", title, text, language);
}

/** Long lines wrap. A single object of JSON has its members below each other. */
export function renderAnswer(title: string, text: string): Html {
  const lines = text.trim().split("\n");
  const isJson = lines.every((line) => line.startsWith("{")) || lines[0] === "{";
  const shown = lines.length === 1 && isJson ? indent(text) : text;
  return renderFigure("code answer", title, shown, isJson ? "json" : undefined);
}

function renderFigure(className: string, title: string, text: string, language?: Language): Html {
  return html`<figure class="${className}"><figcaption>${title}</figcaption>
${renderText(text, language)}</figure>
`;
}

function indent(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/**
 * The same sample in all its languages. Radio buttons choose one without JavaScript, too.
 *
 * @param group a name that no other tabs on the page have
 */
export function renderTabs(group: string, title: string, samples: Sample[]): Html {
  const choices = samples.map(
    ({ id, name }, index) =>
      html`<label><input type="radio" name="${group}" value="${id}"${index === 0 ? new Html(" checked") : ""}>${name}</label>\n`,
  );
  const panels = samples.map(
    ({ id, text, language }) => html`<div class="tab" data-language="${id}">${renderText(text, language)}</div>\n`,
  );
  return html`<fieldset class="code tabs"><legend class="hidden">Language of the sample: ${title}</legend>
<div class="choices">
${choices}</div>
${panels}</fieldset>
`;
}

/** What does not fit is scrolled to, also by keyboard. */
function renderText(text: string, language: Language | undefined): Html {
  const trimmed = text.trimEnd();
  const coloured =
    language === undefined
      ? html`${trimmed}`
      : new Html(hljs.highlight(trimmed, { language, ignoreIllegals: true }).value);
  return html`<pre tabindex="0"><code>${coloured}</code></pre>`;
}
