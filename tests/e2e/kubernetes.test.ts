import { execFileSync, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { BlockList } from "node:net";
import { posix } from "node:path";
import { readMetricNames } from "@booking-events/harness/metric-names";
import { parseEnvironment, variables } from "@booking-events/runtime";
import { findTool } from "@booking-events/scripts/services";
import { describe, expect, test } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { findManifestProblems } from "./check-manifests.ts";
import { type Manifest, podSpecOf, readManifests, renderKustomization } from "./render-kustomization.ts";
import { runPromtool } from "./run-promtool.ts";

const root = "deploy/kubernetes";
const folders = ["base", "migrate", "example", "example/migrate", "example-operators"];
const rendered = Object.fromEntries(folders.map((folder) => [folder, renderKustomization(`${root}/${folder}`)]));
const objects = [...(rendered["example"] ?? []), ...(rendered["example/migrate"] ?? [])];
const pods = objects.filter((object) => podSpecOf(object) !== undefined);

function find(kind: string, component: string): Manifest {
  const found = objects.find(
    (object) => object.kind === kind && object.metadata.name === `booking-events-${component}`,
  );
  if (found === undefined) throw new Error(`no ${kind} of ${component}`);
  return found;
}

function podOf(component: string) {
  const pod = podSpecOf(find(component === "migrate" ? "Job" : "Deployment", component));
  const [container, ...others] = pod.containers;
  expect(others).toEqual([]);
  return { pod, container };
}

describe("every object", () => {
  const all = [...Object.values(rendered).flat(), ...readManifests(`${root}/example/namespace.yaml`)];

  test("is one that Kubernetes, KEDA or the Prometheus operator knows, with no wrong field", async () => {
    expect(all.length).toBeGreaterThan(30);
    expect(await findManifestProblems(all)).toEqual([]);
  });

  // The models find a wrong value, and the compiler an unknown field.
  test.each<[string, string, string, (spec: Manifest["spec"]) => unknown]>([
    ["ScaledObject", "worker", "behavior", (spec) => Object.assign(spec.fallback, { behavior: "higher" })],
    ["NetworkPolicy", "ingest", "from", (spec) => Object.assign(spec.egress[0], { from: [] })],
  ])("would be refused: a %s of %s with a wrong %s", async (kind, component, field, change) => {
    const object = structuredClone(find(kind, component));
    change(object["spec"]);
    expect((await findManifestProblems([object])).join("\n")).toMatch(new RegExp(`\\b${field}\\b`));
  });
});

const hasKubectl = spawnSync("kubectl", ["version", "--client"]).status === 0;

test.skipIf(!hasKubectl)("what these tests render is what kubectl renders", () => {
  const byName = (a: Manifest, b: Manifest) =>
    `${a.kind} ${a.metadata.name}`.localeCompare(`${b.kind} ${b.metadata.name}`);
  for (const folder of folders) {
    const output = execFileSync("kubectl", ["kustomize", `${root}/${folder}`], { encoding: "utf8" });
    const expected: Manifest[] = parseAllDocuments(output).map((document) => document.toJS());
    expect(rendered[folder]?.toSorted(byName), folder).toEqual(expected.toSorted(byName));
  }
});

describe("every pod", () => {
  test("runs an image that the Dockerfile builds, with the ports of its processes", () => {
    const dockerfile = readFileSync("Dockerfile", "utf8");
    for (const object of pods) {
      const [container] = podSpecOf(object).containers;
      const [, target = "", tag] = /^registry\.example\.com\/booking-events\/(\w+):(.+)$/.exec(container.image) ?? [];
      expect(tag).toBeTruthy();
      const stage = dockerfile.split(`FROM base AS ${target}\n`)[1]?.split("\nFROM ")[0];
      const exposed =
        /^EXPOSE (.+)$/m
          .exec(stage ?? "")?.[1]
          ?.split(" ")
          .map(Number) ?? [];
      const ports = (container.ports ?? []).map((port: { containerPort: number }) => port.containerPort);
      expect([object.metadata.name, stage && ports]).toEqual([object.metadata.name, exposed]);
    }
    expect(pods).toHaveLength(6);
  });

  test("sets variables that the processes know, to values that they accept", () => {
    const withOperators = rendered["example-operators"]?.filter((object) => podSpecOf(object) !== undefined) ?? [];
    for (const object of [...pods, ...withOperators]) {
      const [{ env }] = podSpecOf(object).containers;
      for (const { name, value = urls[name as keyof typeof urls] ?? "" } of env) {
        // Node's own.
        if (name === "NODE_OPTIONS") continue;
        expect(variables).toHaveProperty(name);
        const variable = variables[name as keyof typeof variables];
        expect(() => parseEnvironment({ [name]: variable }, { [name]: value })).not.toThrow();
      }
    }
  });

  test.each([
    ["ingest", ["REDIS_URL"], ["REDIS_PASSWORD"]],
    ["worker", ["REDIS_URL", "DATABASE_URL"], ["REDIS_PASSWORD", "DATABASE_PASSWORD", "DIGEST_KEY"]],
    ["lookup", ["REDIS_URL", "DATABASE_URL"], ["REDIS_PASSWORD", "DATABASE_PASSWORD", "DIGEST_KEY"]],
    ["webhooks", ["DATABASE_URL"], ["DATABASE_PASSWORD"]],
    ["ops", ["REDIS_URL", "DATABASE_URL"], ["REDIS_PASSWORD", "DATABASE_PASSWORD", "DIGEST_KEY"]],
    ["migrate", ["DATABASE_URL"], ["DATABASE_PASSWORD"]],
  ])("of %s gets its own credentials, and no others, from its own Secret", (component, required, optional) => {
    interface Reference {
      name: string;
      valueFrom?: { secretKeyRef: { name: string; key: string; optional?: boolean } };
    }
    const references: Reference[] = podOf(component).container.env.filter(({ valueFrom }: Reference) => valueFrom);
    const expected = [...required.map((key) => ({ key })), ...optional.map((key) => ({ key, optional: true }))];
    expect(references.map(({ name, valueFrom }) => ({ name, ...valueFrom?.secretKeyRef })).toSorted(byKey)).toEqual(
      expected.map((reference) => ({ ...reference, name: `booking-events-${component}` })).toSorted(byKey),
    );
    for (const { name, valueFrom } of references) expect(valueFrom?.secretKeyRef.key).toBe(name);
  });

  test("has no privileges, no service account, and writes no file", () => {
    for (const object of pods) {
      const pod = podSpecOf(object);
      expect(pod, object.metadata.name).toMatchObject({
        automountServiceAccountToken: false,
        // The user `node` of the image.
        securityContext: { runAsNonRoot: true, runAsUser: 1000, seccompProfile: { type: "RuntimeDefault" } },
      });
      for (const container of pod.containers) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ["ALL"] },
        });
      }
    }
  });

  test("has the memory that its process needs, as in Compose", () => {
    const { services } = parse(readFileSync("docker-compose.yml", "utf8"), { merge: true });
    for (const component of ["ingest", "worker", "lookup", "webhooks"]) {
      const { resources, env } = podOf(component).container;
      const { mem_limit, environment } = services[component];
      expect(resources.limits).toEqual({ memory: mem_limit.replace(/m$/, "Mi") });
      // With less than its limit a pod may land on a node that has not enough for it.
      expect(resources.requests.memory).toBe(resources.limits.memory);
      expect(env).toContainEqual({ name: "NODE_OPTIONS", value: environment.NODE_OPTIONS });
    }
  });

  test("is selected by one network policy, which blocks all that it does not allow", () => {
    for (const { spec } of pods) {
      const policies = objects.filter(({ kind, spec: policy }) => {
        return kind === "NetworkPolicy" && selects(policy.podSelector, spec.template.metadata.labels);
      });
      expect(policies).toHaveLength(1);
      expect(policies[0]?.["spec"].policyTypes).toEqual(["Ingress", "Egress"]);
    }
  });
});

const urls = { REDIS_URL: "redis://redis", DATABASE_URL: "postgres://db/bookings" };

function byKey(a: { key?: string }, b: { key?: string }): number {
  return String(a.key).localeCompare(String(b.key));
}

interface Selector {
  matchLabels: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values: string[] }[];
}

function selects({ matchLabels, matchExpressions = [] }: Selector, labels: Record<string, string>): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }) => operator === "In" && values.includes(labels[key] ?? ""))
  );
}

test("webhooks reaches PostgreSQL and public addresses, and nothing else of the network", () => {
  const [database, , internet] = find("NetworkPolicy", "webhooks")["spec"].egress;
  expect(database.to).toEqual([{ ipBlock: { cidr: "10.10.2.0/24" } }]);
  const [ipv4, ipv6, ...others] = internet.to;
  expect(ipv6).toEqual({ ipBlock: { cidr: "2000::/3" } });
  expect(others).toEqual([]);
  const isAllowed = (address: string) => {
    const blocks = new BlockList();
    for (const range of ipv4.ipBlock.except) {
      const [network, prefix] = range.split("/");
      blocks.addSubnet(network, Number(prefix));
    }
    return !blocks.check(address);
  };
  expect(
    ["10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.31.0.1", "192.168.1.1"].filter(isAllowed),
  ).toEqual([]);
  expect(isAllowed("8.8.8.8")).toBe(true);
});

test("ingest reaches Redis only, worker and lookup PostgreSQL too, and only Prometheus and the proxy reach them", () => {
  const ports = (rules: { ports?: { port: number | string }[] }[] = []) =>
    rules.map(({ ports = [] }) => ports.map(({ port }) => port));
  const open = (component: string) => {
    const { ingress, egress } = find("NetworkPolicy", component)["spec"];
    return { ingress: ports(ingress), egress: ports(egress) };
  };
  const dns = [53, 53];
  expect(open("ingest")).toEqual({ ingress: [["http"], ["admin"]], egress: [[6379], dns] });
  expect(open("worker")).toEqual({ ingress: [["admin"]], egress: [[6379], [5432], dns] });
  expect(open("lookup")).toEqual({ ingress: [["http"], ["admin"]], egress: [[6379], [5432], dns] });
  expect(open("webhooks")).toEqual({ ingress: [["http"], ["admin"]], egress: [[5432], dns, []] });
  expect(open("ops")).toEqual({ ingress: [], egress: [[6379], [5432], dns] });
  for (const policy of objects.filter(({ kind }) => kind === "NetworkPolicy")) {
    for (const rule of [...(policy["spec"].ingress ?? []), ...policy["spec"].egress]) {
      expect(rule.from ?? rule.to).not.toEqual([]);
    }
  }
});

describe.each(["ingest", "worker", "lookup", "webhooks"])("%s", (component) => {
  test("is found by its service, disruption budget and monitor, and by its autoscaler if it has one", () => {
    const { spec, metadata } = find("Deployment", component);
    const labels = spec.template.metadata.labels;
    expect(selects(spec.selector, labels)).toBe(true);
    for (const { labelSelector } of spec.template.spec.topologySpreadConstraints) {
      expect(selects(labelSelector, labels)).toBe(true);
    }
    const service = find("Service", component);
    expect(selects({ matchLabels: service["spec"].selector }, labels)).toBe(true);
    expect(selects(find("PodDisruptionBudget", component)["spec"].selector, labels)).toBe(true);
    const monitor = find("ServiceMonitor", component)["spec"];
    expect(selects(monitor.selector, service.metadata.labels ?? {})).toBe(true);
    const named = new Set(service["spec"].ports.map(({ name }: { name: string }) => name));
    for (const { port } of monitor.endpoints) expect(named).toContain(port);
    if (component === "lookup" || component === "webhooks") return;
    const autoscaler = component === "ingest" ? "HorizontalPodAutoscaler" : "ScaledObject";
    expect(find(autoscaler, component)["spec"].scaleTargetRef.name).toBe(metadata.name);
    // With `replicas`, each deployment would undo what the autoscaler did.
    expect(spec).not.toHaveProperty("replicas");
  });

  test("is asked for its health on the port that it serves it on", () => {
    const { container } = podOf(component);
    expect(container.env).toContainEqual({ name: "ADMIN_HOST", value: "0.0.0.0" });
    expect(container.livenessProbe.httpGet).toEqual({ path: "/livez", port: "admin" });
    expect(container.readinessProbe.httpGet).toEqual({ path: "/readyz", port: "admin" });
  });

  test("has the time to shut down that it takes at most", () => {
    const { pod, container } = podOf(component);
    const { SHUTDOWN_TIMEOUT_MS } = parseEnvironment({ SHUTDOWN_TIMEOUT_MS: variables.SHUTDOWN_TIMEOUT_MS }, {});
    const delay = container.env.find(({ name }: { name: string }) => name === "SHUTDOWN_DELAY_MS");
    expect(delay === undefined).toBe(component === "worker");
    const longestMs = Number(delay?.value ?? 0) + SHUTDOWN_TIMEOUT_MS;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(longestMs / 1_000 + 3);
  });
});

test.each(["ingest", "lookup", "ops"])(
  "%s reads the partners file from a folder that Kubernetes updates",
  (component) => {
    const { pod, container } = podOf(component);
    const file = container.env.find(({ name }: { name: string }) => name === "PARTNERS_FILE").value;
    const [volume, ...others] = pod.volumes;
    expect(others).toEqual([]);
    expect(container.volumeMounts).toEqual([{ name: volume.name, mountPath: posix.dirname(file), readOnly: true }]);
    expect(posix.basename(file)).toBe("partners.json");
    expect(volume.secret).toEqual({ secretName: "booking-events-partners", defaultMode: 0o440 });
    // Otherwise only root could read it.
    expect(pod.securityContext.fsGroup).toBe(pod.securityContext.runAsGroup);
  },
);

describe("workers are scaled", () => {
  const { spec, metadata } = find("ScaledObject", "worker");
  const [trigger, ...others] = spec.triggers;

  test("by metrics that exist, in the namespace of the deployment", () => {
    expect(others).toEqual([]);
    const names = readMetricNames();
    const used = [...trigger.metadata.query.matchAll(/(\w+)\{([^}]*)\}/g)];
    expect(used).toHaveLength(3);
    for (const [, name, labels] of used) {
      expect(names).toContain(name);
      expect(labels).toContain(`namespace="${metadata.namespace}"`);
    }
  });

  test("by the highest backlog that a process reports, since all report the same", () => {
    expect(trigger.metadata.query).not.toMatch(/sum\([^)]*booking_events_backlog/);
    expect(trigger.metadata.query.match(/max\(booking_events_backlog/g)).toHaveLength(2);
  });

  test.skipIf(findTool("prometheus") === undefined)(
    "by what arrives and what waits, and by nothing at all if the backlog is unknown",
    () => {
      const backlog = (state: string, pod: string, count: number) => ({
        series: `booking_events_backlog{namespace="booking-events",state="${state}",pod="${pod}"}`,
        values: `${count}x40`,
      });
      const none = [backlog("waiting", "ingest", 0), backlog("delayed", "ingest", 0)];
      // 1,000 events a second.
      const arriving = {
        series: 'ingest_requests_total{namespace="booking-events",status="200",partner="acme",pod="ingest"}',
        values: "0+15000x40",
      };
      const waiting = [backlog("waiting", "ingest", 60_000), backlog("waiting", "worker", 60_000)];
      const cases = [
        { input_series: none, events: [0] },
        { input_series: [...none, arriving], events: [1_000] },
        { input_series: [...none, ...waiting], events: [2_000] },
        { input_series: [...none, backlog("delayed", "worker", 700)], events: [1] },
        { input_series: [...none, backlog("held", "ingest", 3_000)], events: [1] },
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

  test("from none, and not down because Prometheus knows nothing", () => {
    const base = rendered["base"]?.find(({ kind }) => kind === "ScaledObject")?.["spec"];
    expect(base.minReplicaCount).toBe(0);
    expect(base.fallback).toMatchObject({ replicas: expect.any(Number), behavior: "currentReplicasIfHigher" });
    expect(trigger.metadata).toMatchObject({ ignoreNullValues: "false", activationThreshold: "0" });
  });
});

describe("with Redis Cluster and PostgreSQL of operators", () => {
  const withOperators = rendered["example-operators"] ?? [];
  const ofKind = (wanted: string) => withOperators.filter(({ kind }) => kind === wanted);

  test("every process that uses Redis finds the cluster, and has the same number of shards", () => {
    const [cluster] = ofKind("RedisCluster");
    const deployments = ofKind("Deployment").filter(({ metadata }) => metadata.name !== "booking-events-webhooks");
    expect(deployments).toHaveLength(4);
    for (const object of deployments) {
      const { env } = podSpecOf(object).containers[0];
      const values = Object.fromEntries(env.map(({ name, value }: { name: string; value?: string }) => [name, value]));
      expect(values).not.toHaveProperty("REDIS_URL");
      expect(values["REDIS_CLUSTER"]).toContain(`${cluster?.metadata.name}-leader:6379`);
      expect(values["QUEUE_SHARDS"]).toBe("16");
      const confirm = (components: RegExp) => (components.test(object.metadata.name) ? "1" : undefined);
      expect(values["REDIS_REPLICAS_TO_CONFIRM"]).toBe(confirm(/-(ingest|ops)$/));
      expect(values["DATABASE_STANDBYS_TO_CONFIRM"]).toBe(confirm(/-(worker|ops)$/));
    }
  });

  test("Redis has the settings that the service demands", () => {
    const [cluster] = ofKind("RedisCluster");
    const { redisLeader, redisFollower, clusterSize } = cluster?.["spec"] ?? {};
    // After a failover, one replica must still be there to confirm.
    expect(redisFollower.replicas).toBe(2 * clusterSize);
    const config = ofKind("ConfigMap").find(
      ({ metadata }) => metadata.name === redisLeader.redisConfig.additionalRedisConfig,
    );
    expect(redisFollower.redisConfig).toEqual(redisLeader.redisConfig);
    const settings = config?.["data"]["redis-additional.conf"].split("\n");
    const { services } = parse(readFileSync("deploy/ha/compose.yml", "utf8"), { merge: true, logLevel: "error" });
    const demanded = services.redis.command.split(/ ?--/).slice(1);
    for (const setting of demanded.filter((setting: string) => !setting.startsWith("maxmemory "))) {
      expect(settings).toContain(setting);
    }
  });

  test("a commit waits for a standby, and only a server with every commit is promoted", () => {
    const [cluster] = ofKind("Cluster");
    expect(cluster?.["spec"]).toMatchObject({
      instances: 3,
      postgresql: { synchronous: { method: "any", number: 1, dataDurability: "required", failoverQuorum: true } },
    });
  });

  test("the network policies allow traffic to both", () => {
    const labels = [
      ofKind("RedisCluster")[0]?.metadata.labels,
      ofKind("Cluster")[0]?.["spec"].inheritedMetadata.labels,
    ];
    const policy = ofKind("NetworkPolicy").find(({ metadata }) => metadata.name.endsWith("-worker"));
    const [redis, postgres] = policy?.["spec"].egress ?? [];
    for (const [index, rule] of [redis, postgres].entries()) {
      expect(selects(rule.to[0].podSelector, labels[index] ?? {})).toBe(true);
    }
  });
});
