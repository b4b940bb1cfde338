import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import http from "node:http";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { type Plugin, rolldown } from "rolldown";
import { waitFor } from "./wait-for.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Under which a workspace package has its source. */
const condition = "@booking-events/source";
const bundleTimeoutMs = 60_000;

/**
 * `npm test` starts some two hundred processes, and two thirds of a start are spent on finding and opening a thousand
 * files. So a run loads each program from one file, made of its sources: nothing has to be built. `npm run test:nightly`
 * and what measures or breaks the service start programs as they are built.
 *
 * @param program the arguments of Node, with the program's file among them
 * @returns arguments that start the same program from its bundle
 */
export async function bundleProgram(program: readonly string[]): Promise<string[]> {
  const folder = process.env["BUNDLES"];
  if (!folder) return [...program];
  const place = program.findIndex((argument) => /\.[jt]s$/.test(argument));
  const entry = resolve(root, sourceOf(program[place] ?? ""));
  const bundle = join(folder, createHash("sha256").update(entry).digest("hex").slice(0, 12));
  await makeOnce(bundle, (to) => writeBundle(entry, to));
  return program.with(place, join(bundle, "main.mjs"));
}

/** Of a built app, or of a program that runs from source anyway. */
function sourceOf(file: string): string {
  return file.replace(/^(apps\/\w+)\/dist\/main\.js$/, "$1/src/main.ts");
}

/** Workers of a run want the same bundles at the same time. */
async function makeOnce(folder: string, make: (to: string) => Promise<void>): Promise<void> {
  const unfinished = `${folder}.unfinished`;
  const isFirst = !existsSync(folder) && (await mkdir(unfinished).then(() => true, hasBegun));
  if (!isFirst) return waitFor(() => existsSync(folder), { timeoutMs: bundleTimeoutMs });
  try {
    await make(unfinished);
    await rename(unfinished, folder);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
}

function hasBegun(error: NodeJS.ErrnoException): false {
  if (error.code === "EEXIST") return false;
  throw error;
}

async function writeBundle(entry: string, dir: string): Promise<void> {
  const bundle = await rolldown({
    input: { main: entry },
    platform: "node",
    resolve: { conditionNames: [condition, "node", "default"] },
    external: /\.node$/,
    plugins: [{ name: "keep-places", transform: (code, id) => keepPlaces(code, id) }, httpWithoutFetch],
    logLevel: "silent",
  });
  await bundle.write({
    dir,
    entryFileNames: "[name].mjs",
    chunkFileNames: "[name]-[hash].mjs",
    banner: ({ isEntry }) => (isEntry ? saveCompiled : ""),
    minify: { compress: false, mangle: false, codegen: { removeWhitespace: true } },
  });
  await bundle.close();
}

/** Otherwise Node does so when a process ends, and tests kill most of theirs. */
const saveCompiled = 'setTimeout(process.getBuiltinModule("node:module").flushCompileCache, 2_000).unref();';

const httpNames = Object.keys(http).filter((name) => !/^(default|WebSocket|CloseEvent|MessageEvent)$/.test(name));

/** To import these three classes, Node loads all that `fetch` needs: a sixth of the CPU of a start. */
const httpWithoutFetch: Plugin = {
  name: "http-without-fetch",
  resolveId: (id, _importer, { kind }) =>
    /^(node:)?http$/.test(id) && kind === "import-statement" ? "\0http" : undefined,
  load: (id) =>
    id === "\0http"
      ? `const http = process.getBuiltinModule("node:http");
         export default http;
         export const { ${httpNames.join(", ")} } = http;`
      : undefined,
};

/** Modules find files by where they are themselves. */
function keepPlaces(code: string, id: string): string | undefined {
  const path = id.split("?")[0] ?? "";
  // This file itself is bundled, too, so no name that is replaced may stand here.
  if (!path.startsWith("/") || !/import\.meta|__(?:dir|file)name/.test(code)) return undefined;
  const url = JSON.stringify(pathToFileURL(path).href);
  const resolving = `process.getBuiltinModule("node:module").createRequire(${url}).resolve`;
  const places = code
    .replaceAll(
      /\bimport\.meta\.resolve\(/g,
      `((name) => process.getBuiltinModule("node:url").pathToFileURL(${resolving}(name)).href)(`,
    )
    .replaceAll(/\bimport\.meta\.url\b/g, url);
  if (/\b(?:const|let|var) __(?:dirname|filename)\b/.test(code)) return places;
  return places
    .replaceAll(/\b__dirname\b/g, JSON.stringify(dirname(path)))
    .replaceAll(/\b__filename\b/g, JSON.stringify(path));
}
