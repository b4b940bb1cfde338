import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { extname } from "node:path";
import type { Context, Next } from "koa";

const folder = new URL("../../assets/", import.meta.url);
const types: Record<string, string> = { ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml" };
const names = ["console.css", "console.js", "icon.svg"] as const;

const assets = new Map(names.map((name) => [name, readAsset(name)]));
const byPath = new Map(Array.from(assets.values(), (asset) => [asset.path, asset]));

function readAsset(name: string) {
  const content = readFileSync(new URL(name, folder));
  const extension = extname(name);
  const version = createHash("sha256").update(content).digest("hex").slice(0, 12);
  return {
    path: `/assets/${name.slice(0, -extension.length)}.${version}${extension}`,
    content,
    type: types[extension] ?? "",
  };
}

/** The path holds a digest of the content, so browsers may keep it forever. */
export function assetPath(name: (typeof names)[number]): string {
  return assets.get(name)?.path ?? "";
}

export async function serveAssets(ctx: Context, next: Next): Promise<void> {
  const asset = byPath.get(ctx.path);
  if (asset === undefined || !["GET", "HEAD"].includes(ctx.method)) return next();
  ctx.set("Cache-Control", "public, max-age=31536000, immutable");
  ctx.type = asset.type;
  ctx.body = asset.content;
}
