import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findOrInstallTool } from "@booking-events/scripts/services";
import { afterAll, describe, expect, test } from "vitest";
import { parseAllDocuments } from "yaml";
import { findManifestProblems } from "./check-manifests.ts";
import { find, folders, rendered, root } from "./kubernetes-manifests.ts";
import { type Manifest, readManifests } from "./render-kustomization.ts";
import { runPromtool } from "./run-promtool.ts";

describe("every object", () => {
  const all = [...Object.values(rendered).flat(), ...readManifests(`${root}/example/namespace.yaml`)];

  test("is one that Kubernetes, Gateway API, KEDA or the Prometheus operator knows, with no wrong field", async () => {
    expect(all.length).toBeGreaterThan(30);
    expect(await findManifestProblems(all)).toEqual([]);
  });

  // The models find a wrong value, and the compiler an unknown field.
  test.each<[string, string, string, (spec: Manifest["spec"]) => unknown]>([
    ["ScaledObject", "worker", "behavior", (spec) => Object.assign(spec.fallback, { behavior: "higher" })],
    ["NetworkPolicy", "redis", "from", (spec) => Object.assign(spec.egress[0], { from: [] })],
  ])("would be refused: a %s of %s with a wrong %s", async (kind, component, field, change) => {
    const object = structuredClone(find(kind, component));
    change(object["spec"]);
    expect((await findManifestProblems([object])).join("\n")).toMatch(new RegExp(`\\b${field}\\b`));
  });
});

const hasKubectl = spawnSync("kubectl", ["version", "--client"]).status === 0;
const hasPrometheus = (await findOrInstallTool("prometheus", { say: console.log })) !== undefined;

test.skipIf(!hasKubectl)("what the tests of the manifests read is what kubectl renders", () => {
  const byName = (a: Manifest, b: Manifest) =>
    `${a.kind} ${a.metadata.name}`.localeCompare(`${b.kind} ${b.metadata.name}`);
  for (const folder of folders) {
    const output = execFileSync("kubectl", ["kustomize", `${root}/${folder}`], { encoding: "utf8" });
    const expected: Manifest[] = parseAllDocuments(output).map((document) => document.toJS());
    expect(rendered[folder].toSorted(byName), folder).toEqual(expected.toSorted(byName));
  }
});

describe.skipIf(!hasKubectl)("deploy/kubernetes/ops", () => {
  const folder = mkdtempSync(join(tmpdir(), "booking-events-kubectl-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  /** Runs the script with a kubectl that renders, and writes down what it would tell a cluster. */
  function runOps(args: string[], exitCode: number) {
    const real = execFileSync("sh", ["-c", "command -v kubectl"], { encoding: "utf8" }).trim();
    const script = `#!/bin/sh
      case "$*" in
        kustomize*) exec "${real}" "$@" ;;
        *create*) cat > "${folder}/manifest.yaml"; echo pod/booking-events-ops-1 ;;
        *exec*) echo "$*" >> "${folder}/told"; exit ${exitCode} ;;
        *) echo "$*" >> "${folder}/told" ;;
      esac`;
    writeFileSync(join(folder, "kubectl"), script, { mode: 0o755 });
    writeFileSync(join(folder, "told"), "");
    const env = { ...process.env, PATH: `${folder}:${process.env["PATH"]}`, OPERATOR: "ann" };
    const { status, stderr } = spawnSync(`${root}/ops`, args, { env, encoding: "utf8" });
    const [pod] = readManifests(join(folder, "manifest.yaml"));
    return { status, stderr, pod, told: readFileSync(join(folder, "told"), "utf8").trim().split("\n") };
  }

  test("runs a command in a pod of its own, as its operator, and deletes the pod whatever becomes of it", () => {
    const { status, stderr, pod, told } = runOps(["dead-letters", "list"], 3);
    expect([status, stderr]).toEqual([3, ""]);
    const { name, ...metadata } = find("Pod", "ops").metadata;
    expect(pod).toEqual({ ...find("Pod", "ops"), metadata: { ...metadata, generateName: `${name}-` } });
    expect(told).toEqual([
      "--namespace booking-events wait --for condition=Ready --timeout 2m pod/booking-events-ops-1",
      "--namespace booking-events exec --stdin pod/booking-events-ops-1 -- env OPERATOR=ann node /app/dist/main.js dead-letters list",
      "--namespace booking-events delete --wait=false pod/booking-events-ops-1",
    ]);
  });

  test("--as-owner gives it the Secret of the migration", () => {
    const { status, pod, told } = runOps(["--as-owner", "maintain"], 0);
    expect(status).toBe(0);
    expect(pod?.["spec"].volumes[0].secret.secretName).toBe("booking-events-migrate");
    expect(told[1]).toMatch(/main\.js maintain$/);
  });
});

test.skipIf(!hasPrometheus)(
  "workers are scaled by what arrives and what waits, and by nothing at all if the backlog is unknown",
  () => {
    const [trigger] = find("ScaledObject", "worker")["spec"].triggers;
    const backlog = (state: string, pod: string, count: number) => ({
      series: `booking_events_backlog{namespace="booking-events",state="${state}",pod="${pod}"}`,
      values: `${count}x40`,
    });
    const none = [backlog("waiting", "ingest", 0), backlog("delayed", "ingest", 0)];
    // 1,000 events a second.
    const arriving = {
      series:
        'ingest_requests_total{namespace="booking-events",kind="create",status="200",partner="acme",pod="ingest"}',
      values: "0+15000x40",
    };
    const inBatches = {
      series: 'ingest_batch_lines_total{namespace="booking-events",status="200",partner="acme",pod="ingest"}',
      values: "0+15000x40",
    };
    const waiting = [backlog("waiting", "ingest", 60_000), backlog("waiting", "worker", 60_000)];
    const cases = [
      { input_series: none, events: [0] },
      { input_series: [...none, arriving], events: [1_000] },
      { input_series: [...none, arriving, inBatches], events: [2_000] },
      { input_series: [...none, ...waiting], events: [2_000] },
      { input_series: [arriving], events: [] },
      { input_series: [], events: [] },
    ];
    const tests = cases.map(({ input_series, events }) => ({
      interval: "15s",
      input_series,
      promql_expr_test: [
        {
          expr: trigger.metadata.query,
          eval_time: "9m",
          exp_samples: events.map((value) => ({ labels: "{}", value })),
        },
      ],
    }));
    runPromtool({ tests });
  },
);
