import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { type Html, html } from "./html.ts";

export interface Client {
  file: string;
  language: string;
  version: string;
  sha256: string;
}

const languages: [extension: string, language: string][] = [
  [".js", "JavaScript, TypeScript"],
  [".d.ts", "its types"],
  [".py", "Python"],
  [".php", "PHP"],
  [".java", "Java"],
  [".cs", "C#"],
];

/** Reads the clients that partners copy into their programs. */
export function readClients(folder: URL): Client[] {
  const names = readdirSync(folder);
  const read = (name: string) => readFileSync(new URL(name, folder), "utf8");
  return languages.flatMap(([extension, language]) =>
    names
      .filter((file) => file.endsWith(extension))
      .map((file) => ({
        file,
        language,
        // Types have that of their client.
        version: findVersion(file, read(file.replace(/\.d\.ts$/, ".js"))),
        sha256: createHash("sha256").update(read(file)).digest("hex"),
      })),
  );
}

/** @throws if a client does not say it: partners would not know which one they have */
function findVersion(file: string, text: string): string {
  const [, version] = /\bversion\b[^\n\d]*?["'](\d+\.\d+\.\d+)["']/i.exec(text) ?? [];
  if (version === undefined) throw new Error(`The client ${file} does not say its version.`);
  return version;
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
