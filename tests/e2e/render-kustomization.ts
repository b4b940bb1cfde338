import { existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments, parse as parseYaml } from "yaml";

/** An object as Kubernetes takes it, for tests that read any field of it. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  // biome-ignore lint/suspicious/noExplicitAny: the typed models check the fields.
  [field: string]: any;
}

interface Kustomization {
  apiVersion: string;
  kind: string;
  resources?: string[];
  components?: string[];
  namespace?: string;
  images?: { name: string; newName: string; newTag: string }[];
  patches?: { target: { kind: string; name?: string }; patch: string }[];
}

const fields = new Set(["apiVersion", "kind", "resources", "components", "namespace", "images", "patches"]);

/**
 * Returns the objects of a kustomization, for machines without kustomize. It knows the fields that `deploy/kubernetes`
 * uses, and of JSON patches the replacement of an existing field, and the addition to an object or the end of a list.
 *
 * @throws if it meets anything else
 */
export function renderKustomization(folder: string): Manifest[] {
  const { kustomization, objects } = read(folder);
  for (const component of kustomization.components ?? []) {
    transform(objects, read(join(folder, component)).kustomization);
  }
  const unused = (kustomization.patches ?? []).filter(
    ({ target }) => !objects.some((object) => isTarget(object, target)),
  );
  if (unused.length > 0)
    throw new Error(`${folder}: no object for the patches of ${unused.map(({ target }) => target.kind)}`);
  return transform(objects, kustomization);
}

function read(folder: string): { kustomization: Kustomization; objects: Manifest[] } {
  const kustomization: Kustomization = parseYaml(readFileSync(join(folder, "kustomization.yaml"), "utf8"));
  const unknown = Object.keys(kustomization).filter((field) => !fields.has(field));
  if (unknown.length > 0) throw new Error(`${folder}: unknown fields of a kustomization: ${unknown}`);
  return {
    kustomization,
    objects: (kustomization.resources ?? []).flatMap((path) => readResource(join(folder, path))),
  };
}

function readResource(path: string): Manifest[] {
  if (!existsSync(path)) throw new Error(`${path} does not exist`);
  return statSync(path).isDirectory() ? renderKustomization(path) : readManifests(path);
}

export function readManifests(path: string): Manifest[] {
  return parseAllDocuments(readFileSync(path, "utf8")).map((document) => {
    if (document.errors[0] !== undefined) throw document.errors[0];
    // Without aliases, so that a patch changes one place.
    return JSON.parse(JSON.stringify(document.toJS()));
  });
}

function transform(objects: Manifest[], { namespace, images = [], patches = [] }: Kustomization): Manifest[] {
  for (const object of objects) {
    if (namespace !== undefined) object.metadata.namespace = namespace;
    for (const container of podSpecOf(object)?.containers ?? []) {
      const image = images.find(({ name }) => name === container.image);
      if (image !== undefined) container.image = `${image.newName}:${image.newTag}`;
    }
  }
  for (const { target, patch } of patches) {
    for (const object of objects.filter((object) => isTarget(object, target))) {
      for (const operation of parseYaml(patch)) change(object, operation);
    }
  }
  return objects;
}

function isTarget({ kind, metadata }: Manifest, target: { kind: string; name?: string }): boolean {
  const isWhole = (pattern: string, text = "") => new RegExp(`^(?:${pattern})$`).test(text);
  return isWhole(target.kind, kind) && isWhole(target.name ?? ".*", metadata.name);
}

export function podSpecOf(object: Manifest) {
  return object.kind === "Pod" ? object["spec"] : object["spec"]?.template?.spec;
}

function change(object: Manifest, { op, path, value }: { op: string; path: string; value: unknown }): void {
  const keys = path.split("/").slice(1);
  const last = keys.pop() as string;
  // biome-ignore lint/suspicious/noExplicitAny: a path leads anywhere.
  const parent = keys.reduce<any>((inner, key) => inner?.[key], object);
  if (op === "add" && last === "-" && Array.isArray(parent)) parent.push(value);
  else if (op === "add" && isObject(parent) && parent[last] === undefined) parent[last] = value;
  else if (op === "replace" && parent?.[last] !== undefined) parent[last] = value;
  else throw new Error(`can't ${op} ${path}`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
