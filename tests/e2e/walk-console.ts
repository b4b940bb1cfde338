/** Whatever a visitor of the console can reach by its links and forms, for tests that are to cover pages yet to be written. */

export interface Walked {
  /** Of each page, and of each form that was sent. */
  path: string;
  status: number;
  html: string;
}

const maxPages = 200;
/** What fields without a value get, by the beginning of their name. */
const fillings: [RegExp, string][] = [
  [/^(reason|why|note)/, "a test"],
  [/^(at|since|until|from|to)$/, new Date(0).toISOString()],
];

/**
 * Visits each page once, and then sends each form that acts once, as it stands there.
 *
 * @param cookie of a visitor who may do everything
 */
export async function walkConsole(url: string, cookie: string): Promise<{ pages: Walked[]; forms: Walked[] }> {
  const pages: Walked[] = [];
  const waiting = ["/"];
  const seen = new Set(waiting);
  for (let path = waiting.shift(); path !== undefined && pages.length < maxPages; path = waiting.shift()) {
    const answer = await fetch(url + path, { headers: { cookie }, redirect: "manual" });
    const page = { path, status: answer.status, html: await answer.text() };
    pages.push(page);
    for (const link of readLinks(page.html)) {
      // A page is the same page with each filter.
      const place = link.replace(/[?#].*/, "");
      if (seen.has(place) || seen.has(link)) continue;
      seen.add(place).add(link);
      waiting.push(link);
    }
  }
  const forms: Walked[] = [];
  const sent = new Set<string>();
  for (const { html } of pages) {
    for (const { action, fields } of readForms(html)) {
      if (sent.has(action) || action === "/logout") continue;
      sent.add(action);
      forms.push(await send(url, cookie, { action, fields }));
    }
  }
  return { pages, forms };
}

async function send(
  url: string,
  cookie: string,
  { action, fields }: { action: string; fields: [string, string][] },
): Promise<Walked> {
  const answer = await fetch(url + action, {
    method: "POST",
    headers: { cookie, "Sec-Fetch-Site": "same-origin" },
    body: new URLSearchParams(fields),
    redirect: "manual",
  });
  const notices = answer.headers.getSetCookie().map((line) => line.split(";")[0]);
  const location = answer.headers.get("location");
  if (location === null) return { path: action, status: answer.status, html: await answer.text() };
  const shown = await fetch(url + location, { headers: { cookie: [cookie, ...notices].join("; ") } });
  return { path: action, status: shown.status, html: await shown.text() };
}

function readLinks(html: string): string[] {
  return Array.from(html.matchAll(/<a\b[^>]*\bhref="(\/(?!\/)[^"]*)"/g), ([, href = ""]) => decode(href));
}

function readForms(html: string): { action: string; fields: [string, string][] }[] {
  const forms = html.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gs);
  return Array.from(forms, ([, attributes = "", content = ""]) => {
    if (read(attributes, "method")?.toLowerCase() !== "post") return [];
    // Of a list, the last choice: the first may be none.
    const controls = content.matchAll(
      /<(?:input|textarea|select|button)\b([^>]*)>(?:<option\b[^>]*\bvalue="([^"]*)"[^>]*>[^<]*<\/option>)*/g,
    );
    const fields = Array.from(controls, ([, control = "", choice]): [string, string][] => {
      const name = read(control, "name");
      if (name === undefined) return [];
      if (choice !== undefined) return [[name, decode(choice)]];
      return [[name, (read(control, "value") || fillings.find(([pattern]) => pattern.test(name))?.[1]) ?? "1"]];
    });
    return { action: read(attributes, "action") ?? "", fields: fields.flat() };
  }).flat();
}

function read(attributes: string, name: string): string | undefined {
  const [, value] = new RegExp(`\\b${name}="([^"]*)"`).exec(attributes) ?? [];
  return value === undefined ? undefined : decode(value);
}

const entities: Record<string, string> = { amp: "&", quot: '"', lt: "<", gt: ">", "#39": "'" };

function decode(text: string): string {
  return text.replaceAll(/&(amp|quot|lt|gt|#39);/g, (_, name: string) => entities[name] ?? "");
}
