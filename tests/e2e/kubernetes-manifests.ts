import { type Manifest, podSpecOf, renderKustomization } from "./render-kustomization.ts";

export const root = "deploy/kubernetes";
/** Every folder with a kustomization that somebody applies. */
export const folders = [
  "base",
  "gateway",
  "migrate",
  "ops-pod",
  "console",
  "data-services-alerts",
  "example",
  "example/migrate",
  "example/ops-pod",
  "example/console",
  "example-operators",
  "example-operators/ops-pod",
  "example-operators/console",
] as const;

export const rendered = Object.fromEntries(
  folders.map((folder) => [folder, renderKustomization(`${root}/${folder}`)]),
) as Record<(typeof folders)[number], Manifest[]>;

/** All that the example deploys, with its migration, the pod of an operator, and the console. */
export const objects = (["example", "example/migrate", "example/ops-pod", "example/console"] as const).flatMap(
  (folder) => rendered[folder],
);
export const pods = objects.filter((object) => podSpecOf(object) !== undefined);

/** Finds an object by what follows `booking-events-` in its name. */
export function find(kind: string, component: string): Manifest {
  const found = objects.find(
    (object) => object.kind === kind && object.metadata.name === `booking-events-${component}`,
  );
  if (found === undefined) throw new Error(`no ${kind} of ${component}`);
  return found;
}

export interface Selector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values: string[] }[];
}

export function selects(
  { matchLabels = {}, matchExpressions = [] }: Selector,
  labels: Record<string, string>,
): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }) => operator === "In" && values.includes(labels[key] ?? ""))
  );
}
