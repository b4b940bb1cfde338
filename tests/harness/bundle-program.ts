import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { rolldown } from "rolldown";
import { waitFor } from "./wait-for.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const condition = "@booking-events/source";
const bundleTimeoutMs = 60_000;

/**
 * `npm test` starts some two hundred processes, and two thirds of a start are spent on finding and opening a thousand
 * files. So a run loads each program from one file, made of the same modules. `npm run test:nightly` and what measures
 * or breaks the service start programs as they are built.
 *
 * @param program the arguments of Node, with the program's file among them
 * @param environment of the process. With NODE_OPTIONS, a test looks into how modules are loaded, which stays as it is
 * @returns arguments that start the same program from its bundle
 */
export async function bundleProgram(
  program: readonly string[],
  environment: Record<string, string> = {},
): Promise<string[]> {
  const folder = process.env["BUNDLES"];
  if (!folder || "NODE_OPTIONS" in environment) return [...program];
  const place = program.findIndex((argument) => /\.[jt]s$/.test(argument));
  const entry = resolve(root, program[place] ?? "");
  const bundle = join(folder, createHash("sha256").update(entry).digest("hex").slice(0, 12));
  const isFromSource = program.includes(`--conditions=${condition}`);
  await makeOnce(bundle, (to) => writeBundle(entry, to, isFromSource ? [condition] : []));
  return program.with(place, join(bundle, "main.mjs"));
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

async function writeBundle(entry: string, dir: string, conditions: string[]): Promise<void> {
  const bundle = await rolldown({
    input: { main: entry },
    platform: "node",
    resolve: { conditionNames: [...conditions, "node", "default"] },
    external: /\.node$/,
    plugins: [{ name: "keep-places", transform: (code, id) => keepPlaces(code, id) }],
    logLevel: "silent",
  });
  await bundle.write({ dir, entryFileNames: "[name].mjs", chunkFileNames: "[name]-[hash].mjs" });
  await bundle.close();
}

/** Modules find files by where they are themselves. */
function keepPlaces(code: string, id: string): string | undefined {
  const path = id.split("?")[0] ?? "";
  if (!path.startsWith("/") || !/import\.meta|__dirname|__filename/.test(code)) return undefined;
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
