/** HTML that needs no further escaping. */
export class Html {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A template whose values are escaped unless they are Html. The members of an array follow each other. */
export function html(strings: TemplateStringsArray, ...values: (string | number | Html | Html[])[]): Html {
  return new Html(String.raw({ raw: strings }, ...values.map(toText)));
}

function toText(value: string | number | Html | Html[]): string {
  if (Array.isArray(value)) return value.map(({ text }) => text).join("");
  return value instanceof Html ? value.text : escapeHtml(String(value));
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
