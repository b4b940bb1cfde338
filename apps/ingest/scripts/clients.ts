import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { type Html, html } from "./html.ts";

export interface Client {
  file: string;
  language: string;
  version: string;
  sha256: string;
}

const languages: Record<string, string> = {
  ".ts": "TypeScript",
  ".js": "JavaScript",
  ".py": "Python",
  ".php": "PHP",
  ".java": "Java",
  ".cs": "C#",
};

/** Reads the clients that partners copy into their programs. */
export function readClients(folder: URL): Client[] {
  const names = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && languages[extname(entry.name)] !== undefined)
    .map(({ name }) => name);
  const clients = names.map((file) => describeClient(file, readFileSync(new URL(file, folder), "utf8")));
  const order = Object.values(languages);
  return clients.sort((one, other) => order.indexOf(one.language) - order.indexOf(other.language));
}

function describeClient(file: string, text: string): Client {
  const [, version = ""] = /\bversion\b[^\n\d]*?["'](\d+\.\d+\.\d+)["']/i.exec(text) ?? [];
  const language = file.endsWith(".d.ts") ? "Types for it" : (languages[extname(file)] ?? "");
  return { file, language, version, sha256: createHash("sha256").update(text).digest("hex") };
}

export function renderClients(clients: Client[], root: string): Html {
  const rows = clients.map(
    ({ file, language, version, sha256 }) => html`<tr>
<th scope="row">${language}</th>
<td data-label="File"><a href="${root}docs/clients/${file}" download>${file}</a></td>
<td data-label="Version">${version}</td>
<td data-label="SHA-256"><code class="digest">${sha256}</code></td>
</tr>
`,
  );
  return html`<div class="table clients"><table>
<thead><tr><th scope="col">Language</th><th scope="col">File</th><th scope="col">Version</th><th scope="col">SHA-256</th></tr></thead>
<tbody>
${rows}</tbody>
</table></div>
`;
}
