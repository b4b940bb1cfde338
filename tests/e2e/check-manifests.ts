import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Manifest } from "./render-kustomization.ts";

/** The packages of the models that are not Kubernetes' own, by API group. */
const packages: Record<string, string> = {
  "gateway.networking.k8s.io": "@kubernetes-models/gateway-api",
  "keda.sh": "@kubernetes-models/keda",
  "monitoring.coreos.com": "@kubernetes-models/prometheus-operator",
};

/** No package has models of these. Their fields were compared with the operators' own definitions by hand. */
const groupsWithoutModels = new Set(["gateway.envoyproxy.io", "redis.redis.opstreelabs.in", "postgresql.cnpg.io"]);

/**
 * Checks objects against the typed models of Kubernetes, Gateway API, KEDA and the Prometheus operator. The models check types,
 * formats and values when they run, and only the compiler knows their unknown fields.
 *
 * @returns what is wrong. Empty: all objects are valid
 */
export async function findManifestProblems(all: Manifest[]): Promise<string[]> {
  const objects = all.filter(({ apiVersion }) => !groupsWithoutModels.has(groupOf(apiVersion)));
  const invalid = await Promise.all(objects.map(findInvalidValues));
  return [...invalid.flat(), ...(await findWrongFields(objects))];
}

async function findInvalidValues(object: Manifest): Promise<string[]> {
  const models = await import(/* @vite-ignore */ moduleOf(object));
  const Model = models[object.kind];
  if (Model === undefined) return [`${object.apiVersion} has no ${object.kind}`];
  try {
    new Model(object).validate();
    return [];
  } catch (error) {
    return [`${object.kind} ${object.metadata.name}: ${(error as Error).message}`];
  }
}

function moduleOf({ apiVersion }: Manifest): string {
  return `${packages[groupOf(apiVersion)] ?? "kubernetes-models"}/${apiVersion}`;
}

function groupOf(apiVersion: string): string {
  return apiVersion.split("/")[0] ?? "";
}

async function findWrongFields(objects: Manifest[]): Promise<string[]> {
  // Inside of node_modules, where the compiler finds the models and git nothing.
  const folder = mkdtempSync(join(import.meta.dirname, "node_modules", ".manifests-"));
  try {
    const file = join(folder, "manifests.ts");
    writeFileSync(file, objects.map(toTypeScript).join("\n"));
    return await compile(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function toTypeScript(object: Manifest, index: number): string {
  const type = `I${object.kind}`;
  return [
    `import type { ${type} as Type${index} } from "${moduleOf(object)}";`,
    `export const object${index}: Type${index} = ${JSON.stringify(object, null, 2)};`,
  ].join("\n");
}

/** @returns the compiler's errors */
function compile(file: string): Promise<string[]> {
  const compiler = join(import.meta.dirname, "../../node_modules/.bin/tsc");
  const options = [
    "--ignoreConfig",
    "--noEmit",
    "--strict",
    "--skipLibCheck",
    "--module",
    "nodenext",
    "--pretty",
    "false",
  ];
  return new Promise((resolve) => {
    execFile(compiler, [...options, file], (error, stdout, stderr) => {
      resolve(error === null ? [] : `${stdout}${stderr}`.trim().split("\n"));
    });
  });
}
