import { readFileSync } from "node:fs";
import { BlockList, isIPv4 } from "node:net";
import { posix } from "node:path";
import { readMetricNames } from "@booking-events/harness/metric-names";
import { parseEnvironment, variables } from "@booking-events/runtime";
import { isPublicAddress } from "@booking-events/subscribers/public-addresses";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { find, objects, pods, rendered, root, type Selector, selects } from "./kubernetes-manifests.ts";
import { findPodSecurityViolations } from "./pod-security.ts";
import { type Manifest, podSpecOf, readManifests } from "./render-kustomization.ts";

const podKinds: Record<string, string> = { migrate: "Job", ops: "Pod" };

function podOf(component: string) {
  const pod = podSpecOf(find(podKinds[component] ?? "Deployment", component));
  const [container, ...others] = pod.containers;
  expect(others).toEqual([]);
  return { pod, container };
}

const labelsOf = (component: string) => ({
  "app.kubernetes.io/name": "booking-events",
  "app.kubernetes.io/component": component,
});

describe("every pod", () => {
  test("runs the release, an image that the Dockerfile builds, with the ports of its processes", () => {
    const dockerfile = readFileSync("Dockerfile", "utf8");
    const tags = new Set<string | undefined>();
    for (const object of pods) {
      const { containers, imagePullSecrets } = podSpecOf(object);
      const [container] = containers;
      const [, target = "", tag] = /^registry\.example\.com\/booking-events\/(\w+):(.+)$/.exec(container.image) ?? [];
      tags.add(tag);
      const stage = dockerfile.split(`FROM base AS ${target}\n`)[1]?.split("\nFROM ")[0];
      const exposed = /^EXPOSE (.+)$/m.exec(stage ?? "")?.[1]?.split(" ") ?? [];
      const ports = (container.ports ?? []).map((port: { containerPort: number }) => String(port.containerPort));
      expect([object.metadata.labels, stage && ports]).toEqual([object.metadata.labels, exposed]);
      expect(imagePullSecrets).toEqual([{ name: "booking-events-registry" }]);
    }
    expect([...tags]).toEqual([expect.any(String)]);
    expect(pods).toHaveLength(7);
  });

  test("sets variables that the processes know, to values that they accept", () => {
    const all = Object.values(rendered).flat();
    for (const object of all.filter((object) => podSpecOf(object) !== undefined)) {
      for (const { name, value } of podSpecOf(object).containers[0].env) {
        // Node's own, and secrets.
        if (name === "NODE_OPTIONS" || value.startsWith(secretsFolder)) continue;
        expect(variables).toHaveProperty(name);
        const variable = variables[name as keyof typeof variables];
        expect(() => parseEnvironment({ [name]: variable }, { [name]: value })).not.toThrow();
      }
    }
  });

  test.each([
    ["ingest", ["REDIS_URL", "REDIS_PASSWORD"]],
    ["worker", ["REDIS_URL", "REDIS_PASSWORD", "DATABASE_URL", "DATABASE_PASSWORD", "DIGEST_KEY"]],
    ["lookup", ["REDIS_URL", "REDIS_PASSWORD", "DATABASE_URL", "DATABASE_PASSWORD", "DIGEST_KEY"]],
    ["webhooks", ["DATABASE_URL", "DATABASE_PASSWORD"]],
    ["ops", ["REDIS_URL", "REDIS_PASSWORD", "DATABASE_URL", "DATABASE_PASSWORD", "DIGEST_KEY"]],
    ["migrate", ["DATABASE_URL", "DATABASE_PASSWORD"]],
    [
      "console",
      [
        ...["REDIS_URL", "REDIS_PASSWORD", "DATABASE_URL", "DATABASE_PASSWORD", "DIGEST_KEY"],
        ...["CONSOLE_PASSWORD", "CONSOLE_SESSION_KEY"],
      ],
    ],
  ])("of %s gets its own credentials, and no others, as files from its own Secret", (component, names) => {
    const { pod, container } = podOf(component);
    const secrets = container.env.filter(({ value }: { value: string }) => value.startsWith(secretsFolder));
    expect(secrets).toEqual(names.map((name) => ({ name: `${name}_FILE`, value: `${secretsFolder}${name}` })));
    for (const name of names) expect(variables).toHaveProperty(name);
    expect(JSON.stringify(container)).not.toMatch(/secretKeyRef|envFrom/);
    expect(container.volumeMounts[0]).toEqual({
      name: "secrets",
      mountPath: posix.join(secretsFolder, "."),
      readOnly: true,
    });
    expect(pod.volumes[0]).toEqual({
      name: "secrets",
      secret: { secretName: `booking-events-${component}`, defaultMode: 0o440 },
    });
    // Otherwise only root could read it.
    expect(pod.securityContext.fsGroup).toBe(pod.securityContext.runAsGroup);
  });

  test("has the memory that its process needs, as in Compose", () => {
    const { services } = parse(readFileSync("docker-compose.yml", "utf8"), { merge: true });
    for (const component of ["ingest", "worker", "lookup", "webhooks", "console", "ops"]) {
      const { resources, env } = podOf(component).container;
      const { mem_limit, environment } = services[component];
      expect(resources.limits).toEqual({ memory: mem_limit.replace(/m$/, "Mi") });
      // With less than its limit a pod may land on a node that has not enough for it.
      expect(resources.requests.memory).toBe(resources.limits.memory);
      const options = env.find(({ name }: { name: string }) => name === "NODE_OPTIONS");
      expect(options?.value).toBe(environment.NODE_OPTIONS);
    }
  });
});

const secretsFolder = "/run/secrets/booking-events/";

describe("where Pod Security `restricted` is enforced", () => {
  test("the namespace enforces it", () => {
    const [namespace] = readManifests(`${root}/example/namespace.yaml`);
    expect(namespace?.metadata.labels).toMatchObject({ "pod-security.kubernetes.io/enforce": "restricted" });
    for (const object of objects) expect(object.metadata.namespace).toBe(namespace?.metadata.name);
  });

  test("every pod is admitted, and has no service account and writes no file", () => {
    for (const object of Object.values(rendered).flat()) {
      const pod = podSpecOf(object);
      if (pod === undefined) continue;
      expect([object.metadata, findPodSecurityViolations(pod)]).toEqual([object.metadata, []]);
      // The user `node` of the image.
      expect(pod).toMatchObject({ automountServiceAccountToken: false, securityContext: { runAsUser: 1000 } });
      for (const container of pod.containers) expect(container.securityContext.readOnlyRootFilesystem).toBe(true);
    }
  });

  test("every pod of the operators is admitted", () => {
    const { spec: redis } = findIn("example-operators", "RedisCluster");
    for (const { securityContext } of [redis.redisLeader, redis.redisFollower]) {
      // redis-operator copies both contexts to the pods of its StatefulSets. Their volumes are claims and a ConfigMap.
      const pod = { securityContext: redis.podSecurityContext, containers: [{ name: "redis", securityContext }] };
      expect(findPodSecurityViolations(pod)).toEqual([]);
    }
    // CloudNativePG's own contexts fit, unless a cluster overrides them.
    const { spec: postgresql } = findIn("example-operators", "Cluster");
    for (const field of ["podSecurityContext", "securityContext", "seccompProfile"]) {
      expect(postgresql).not.toHaveProperty(field);
    }
  });

  test.each<[string, (pod: Manifest["spec"]) => void]>([
    ["shares a namespace of the host", (pod) => Object.assign(pod, { hostNetwork: true })],
    [
      "has a volume of a type that is not allowed",
      (pod) => pod.volumes.push({ name: "host", hostPath: { path: "/" } }),
    ],
    ["worker may run as root", (pod) => delete pod.securityContext.runAsNonRoot],
    ["worker has no seccomp profile", (pod) => delete pod.securityContext.seccompProfile],
    ["worker runs as root", (pod) => Object.assign(pod.containers[0].securityContext, { runAsUser: 0 })],
    ["worker may gain privileges", (pod) => delete pod.containers[0].securityContext.allowPrivilegeEscalation],
    ["worker keeps capabilities", (pod) => delete pod.containers[0].securityContext.capabilities],
    ["worker is privileged", (pod) => Object.assign(pod.containers[0].securityContext, { privileged: true })],
    ["worker takes a port of the host", (pod) => Object.assign(pod.containers[0].ports[0], { hostPort: 80 })],
    ["first may gain privileges", (pod) => Object.assign(pod, { initContainers: [firstContainer] })],
  ])("a pod would be refused that %s", (violation, change) => {
    const pod = structuredClone(podOf("worker").pod);
    change(pod);
    expect(findPodSecurityViolations(pod)).toContain(violation);
  });
});

const firstContainer = { name: "first", securityContext: { capabilities: { drop: ["ALL"] } } };

function findIn(folder: keyof typeof rendered, kind: string): Manifest {
  const found = rendered[folder].find((object) => object.kind === kind);
  if (found === undefined) throw new Error(`no ${kind} in ${folder}`);
  return found;
}

describe("the network", () => {
  const policies = objects.filter(({ kind }) => kind === "NetworkPolicy");
  const select = (component: string) => policies.filter(({ spec }) => selects(spec.podSelector, labelsOf(component)));

  interface Rule {
    from?: Peer[];
    to?: Peer[];
    ports: { port: number | string; protocol?: string }[];
  }
  interface Peer {
    ipBlock?: { cidr: string; except?: string[] };
    namespaceSelector?: Selector;
    podSelector?: Selector;
  }
  const rules = (component: string, direction: "ingress" | "egress"): Rule[] =>
    select(component).flatMap(({ spec }) => spec[direction] ?? []);
  const ports = (component: string, direction: "ingress" | "egress") =>
    rules(component, direction).map(({ ports }) => ports.map(({ port }) => port));

  test("is closed to every pod, but for what a policy allows it", () => {
    for (const { spec } of policies) {
      for (const rule of [...(spec.ingress ?? []), ...(spec.egress ?? [])]) {
        // Without either, a rule allows everything.
        expect(rule.from ?? rule.to).not.toHaveLength(0);
        expect(rule.ports).not.toHaveLength(0);
      }
    }
    for (const component of Object.keys(reachable)) {
      const closed = new Set(select(component).flatMap(({ spec }) => spec.policyTypes));
      expect([component, closed]).toEqual([component, new Set(["Ingress", "Egress"])]);
    }
    const known = pods.map(({ kind, metadata, spec }) => (kind === "Pod" ? metadata : spec.template.metadata).labels);
    expect(known).toEqual(expect.arrayContaining(Object.keys(reachable).map(labelsOf)));
    expect(known).toHaveLength(Object.keys(reachable).length);
  });

  const [dns, redis, postgresql, subscribers] = [[53, 53], [6379], [5432], [443]];
  const reachable = {
    ingest: { ingress: [["admin"], ["http"]], egress: [dns, redis] },
    worker: { ingress: [["admin"]], egress: [dns, redis, postgresql] },
    lookup: { ingress: [["admin"], ["http"]], egress: [dns, redis, postgresql] },
    webhooks: { ingress: [["admin"], ["http"]], egress: [dns, postgresql, subscribers] },
    console: { ingress: [["admin"]], egress: [dns, redis, postgresql] },
    ops: { ingress: [["admin"]], egress: [dns, redis, postgresql, subscribers] },
    migrate: { ingress: [["admin"]], egress: [dns, postgresql] },
  };

  test.each(Object.entries(reachable))("of %s leads where it must, and nowhere else", (component, expected) => {
    const found = { ingress: ports(component, "ingress"), egress: ports(component, "egress") };
    const sorted = (lists: unknown[][]) => lists.toSorted((a, b) => String(a).localeCompare(String(b)));
    expect(sorted(found.ingress)).toEqual(sorted(expected.ingress));
    expect(sorted(found.egress)).toEqual(sorted(expected.egress));
  });

  test("leads to the addresses of managed services, which the example names once each", () => {
    const ofPort = (port: number) => policies.filter(({ spec }) => spec.egress?.[0].ports[0].port === port);
    const addresses = (port: number) => ofPort(port).map(({ spec }) => spec.egress[0].to);
    expect(addresses(6379)).toEqual([[{ ipBlock: { cidr: "10.10.1.0/24" } }]]);
    expect(addresses(5432)).toEqual([[{ ipBlock: { cidr: "10.10.2.0/24" } }]]);
  });

  test("leads webhooks to the addresses that it posts to, and to no private one", () => {
    const internet = rules("webhooks", "egress").find(({ ports }) => ports[0]?.port === 443);
    const isAllowed = (address: string) =>
      (internet?.to ?? []).some(({ ipBlock }) => {
        const { cidr = "", except = [] } = ipBlock ?? {};
        return contains(cidr, address) && !except.some((range) => contains(range, address));
      });
    const private4 = ["10.0.0.1", "100.64.0.1", "127.0.0.1", "169.254.169.254", "172.31.0.1", "192.168.1.1", "0.0.0.0"];
    const special4 = ["192.0.0.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"];
    const private6 = ["::1", "fd00::1", "fe80::1", "::ffff:10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::1", "2001::1"];
    const others = ["8.8.8.8", "203.0.114.1", "2606:4700::1111", "2a00:1450::1"];
    for (const address of [...private4, ...special4, ...private6, ...others]) {
      expect([address, isAllowed(address)]).toEqual([address, isPublicAddress(address)]);
    }
    expect(others.every(isAllowed)).toBe(true);
  });

  test("is open to Prometheus' pods only, and to the proxies of the gateway", () => {
    const peers = (component: string, port: string) =>
      rules(component, "ingress").flatMap(({ from, ports }) => (ports[0]?.port === port ? from : []));
    const name = { "kubernetes.io/metadata.name": "monitoring" };
    expect(peers("worker", "admin")).toEqual([
      {
        namespaceSelector: { matchLabels: name },
        podSelector: { matchLabels: { "app.kubernetes.io/name": "prometheus" } },
      },
    ]);
    const [gateway] = peers("ingest", "http");
    const ofGateway = { "gateway.envoyproxy.io/owning-gateway-name": findIn("example", "Gateway").metadata.name };
    expect(gateway?.podSelector?.matchLabels).toEqual(ofGateway);
    expect(gateway?.namespaceSelector?.matchLabels).toEqual({ "kubernetes.io/metadata.name": "envoy-gateway-system" });
  });
});

function contains(range: string, address: string): boolean {
  const [network = "", prefix] = range.split("/");
  const family = isIPv4(network) ? "ipv4" : "ipv6";
  if (isIPv4(address) !== isIPv4(network)) return false;
  const block = new BlockList();
  block.addSubnet(network, Number(prefix), family);
  return block.check(address, family);
}

describe.each(["ingest", "worker", "lookup", "webhooks", "console"])("%s", (component) => {
  test("is found by its service and monitor, and by its disruption budget and autoscaler if it has one", () => {
    const { spec, metadata } = find("Deployment", component);
    const labels = spec.template.metadata.labels;
    expect(selects(spec.selector, labels)).toBe(true);
    for (const { labelSelector } of spec.template.spec.topologySpreadConstraints ?? []) {
      expect(selects(labelSelector, labels)).toBe(true);
    }
    const service = find("Service", component);
    expect(selects({ matchLabels: service["spec"].selector }, labels)).toBe(true);
    const monitor = find("ServiceMonitor", component)["spec"];
    expect(selects(monitor.selector, service.metadata.labels ?? {})).toBe(true);
    const named = new Set(service["spec"].ports.map(({ name }: { name: string }) => name));
    for (const { port } of monitor.endpoints) expect(named).toContain(port);
    // There is one console.
    if (component === "console") return expect(spec.replicas).toBe(1);
    expect(selects(find("PodDisruptionBudget", component)["spec"].selector, labels)).toBe(true);
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
    // Workers and the console have no proxy that has to notice.
    expect(delay === undefined).toBe(["worker", "console"].includes(component));
    const longestMs = Number(delay?.value ?? 0) + SHUTDOWN_TIMEOUT_MS;
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(longestMs / 1_000 + 3);
  });
});

test("nobody acts unnamed: an operator is named by the command, and the migration by its job", () => {
  expect(podOf("ops").container.env).toContainEqual({ name: "OPERATOR_REQUIRED", value: "true" });
  expect(podOf("migrate").container.env).toContainEqual({ name: "OPERATOR", value: "kubernetes" });
});

test.each(["ingest", "lookup", "console", "ops"])(
  "%s reads the partners file from a folder that Kubernetes updates",
  (component) => {
    const { pod, container } = podOf(component);
    const file = container.env.find(({ name }: { name: string }) => name === "PARTNERS_FILE").value;
    const volume = pod.volumes[1];
    expect(container.volumeMounts[1]).toEqual({ name: volume.name, mountPath: posix.dirname(file), readOnly: true });
    expect(posix.basename(file)).toBe("partners.json");
    expect(volume.secret).toEqual({ secretName: "booking-events-partners", defaultMode: 0o440 });
  },
);

describe("a command of an operator", () => {
  const pod = find("Pod", "ops");

  test("survives a release: nothing that is deployed has its pod, owns it or selects it", () => {
    // The example without the pod is what a release applies.
    expect(rendered.example.map(({ kind }) => kind)).not.toContain("Pod");
    expect(pod.metadata).not.toHaveProperty("ownerReferences");
    const selectors = rendered.example.flatMap(({ kind, spec }) => {
      if (kind === "Service") return { matchLabels: spec.selector };
      return kind === "Deployment" || kind === "PodDisruptionBudget" ? spec.selector : [];
    });
    expect(selectors).not.toHaveLength(0);
    for (const selector of selectors) expect(selects(selector, pod.metadata.labels ?? {})).toBe(false);
  });

  test("survives a deleted Secret: it starts once, and what it has read stays", () => {
    expect(pod["spec"].restartPolicy).toBe("Never");
  });

  test("is not moved by autoscalers of nodes", () => {
    expect(pod.metadata.annotations).toEqual({
      "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
      "karpenter.sh/do-not-disrupt": "true",
    });
  });

  test("runs in a pod that ends if its operator forgets it", () => {
    expect(podOf("ops").container.command).toEqual(["sleep", "12h"]);
  });

  test("may be one of the owner of the tables: the script finds the Secret to replace", () => {
    const script = readFileSync(`${root}/ops`, "utf8");
    const [, replaced] = /s\/secretName: ([\w-]+)\$\//.exec(script) ?? [];
    expect(pod["spec"].volumes[0].secret.secretName).toBe(replaced);
    expect(script).toContain(`secret=${podOf("migrate").pod.volumes[0].secret.secretName}\n`);
  });
});

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
    expect(trigger.metadata.query).toMatch(/max\(booking_events_backlog/);
  });

  test("never to none, because retention, erasures and metrics need one", () => {
    for (const folder of ["base", "example", "example-operators"] as const) {
      const scaled = findIn(folder, "ScaledObject");
      expect(scaled["spec"].minReplicaCount).toBeGreaterThanOrEqual(1);
      // Either would let KEDA stop all of them.
      expect(scaled["spec"]).not.toHaveProperty("idleReplicaCount");
      expect(scaled.metadata).not.toHaveProperty("annotations");
    }
  });

  test("not down because Prometheus knows nothing", () => {
    expect(spec.fallback).toMatchObject({ replicas: expect.any(Number), behavior: "currentReplicasIfHigher" });
    expect(spec.fallback.replicas).toBeGreaterThanOrEqual(spec.minReplicaCount);
    expect(trigger.metadata).toMatchObject({ ignoreNullValues: "false" });
  });
});

test("PostgreSQL allows the connections of all pods, also while a deployment adds one to each", () => {
  const page = readFileSync("docs/operations/start.md", "utf8");
  const sentence = /^- Allow .*console\.$/m.exec(page)?.[0] ?? "";
  const each = Array.from(
    sentence.matchAll(/(\d+)(?: connections)? for (?:each|the) (\w+)/g),
    ([, count, component = ""]) => {
      const pods =
        component === "worker"
          ? find("ScaledObject", component)["spec"].maxReplicaCount
          : find("Deployment", component)["spec"].replicas;
      return Number(count) * (pods + 1);
    },
  );
  expect(each).toHaveLength(4);
  const [postgres] = readManifests(`${root}/example-operators/postgresql.yaml`);
  const allowed = Number(postgres?.["spec"].postgresql.parameters.max_connections ?? 100);
  expect(each.reduce((sum, count) => sum + count)).toBeLessThan(allowed);
  expect(page).toContain(`\`max_connections = ${allowed}\``);
});

test("Prometheus' operator finds every monitor and rule by one label", () => {
  const found = objects.filter(({ apiVersion }) => apiVersion.startsWith("monitoring.coreos.com/"));
  expect(found.map(({ kind }) => kind).toSorted()).toEqual([
    "PrometheusRule",
    ...Array.from({ length: 5 }, () => "ServiceMonitor"),
  ]);
  for (const { metadata } of found) expect(metadata.labels).toMatchObject({ release: "kube-prometheus-stack" });
});

test("the pages name the same minimum versions as the manifests' README", () => {
  const readme = readFileSync(`${root}/README.md`, "utf8");
  for (const name of ["Kubernetes", "KEDA", "Prometheus operator", "Gateway API", "Envoy Gateway"]) {
    expect(readme).toMatch(new RegExp(`^\\| ${name}[^|]*\\| +\\d+\\.\\d+ `, "m"));
  }
  for (const page of ["docs/operations/start.md", "docs/operations/grow.md", "docs/operations/change.md"]) {
    expect(readFileSync(page, "utf8")).not.toMatch(/(Kubernetes|KEDA|redis-operator|CloudNativePG|Gateway) \d+\.\d+/);
  }
});

describe("with Redis Cluster and PostgreSQL of operators", () => {
  const withOperators = rendered["example-operators"];
  const cluster = findIn("example-operators", "RedisCluster");

  test("every process that uses Redis finds the cluster, and has the same number of shards", () => {
    const users = [
      ...withOperators.filter(({ kind, metadata }) => kind === "Deployment" && !/webhooks$/.test(metadata.name)),
      findIn("example-operators/ops-pod", "Pod"),
      findIn("example-operators/console", "Deployment"),
    ];
    expect(users).toHaveLength(5);
    for (const object of users) {
      const { env } = podSpecOf(object).containers[0];
      const values = Object.fromEntries(env.map(({ name, value }: { name: string; value?: string }) => [name, value]));
      expect(values).not.toHaveProperty("REDIS_URL_FILE");
      expect(values["REDIS_CLUSTER"]).toContain(`${cluster.metadata.name}-leader:6379`);
      expect(values["QUEUE_SHARDS"]).toBe("16");
      const component = object.metadata.labels?.["app.kubernetes.io/component"] ?? "";
      const confirm = (components: string[]) => (components.includes(component) ? "1" : undefined);
      expect(values["REDIS_REPLICAS_TO_CONFIRM"]).toBe(confirm(["ingest", "console", "ops"]));
      expect(values["DATABASE_STANDBYS_TO_CONFIRM"]).toBe(confirm(["worker", "ops"]));
    }
  });

  test("Redis has the settings that the service demands", () => {
    const { redisLeader, redisFollower, clusterSize } = cluster["spec"];
    // After a failover, one replica must still be there to confirm.
    expect(redisFollower.replicas).toBe(2 * clusterSize);
    const config = withOperators.find(
      ({ kind, metadata }) => kind === "ConfigMap" && metadata.name === redisLeader.redisConfig.additionalRedisConfig,
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
    expect(findIn("example-operators", "Cluster")["spec"]).toMatchObject({
      instances: 3,
      postgresql: { synchronous: { method: "any", number: 1, dataDurability: "required", failoverQuorum: true } },
    });
  });

  test("the network policies allow traffic to both", () => {
    const labels = {
      redis: cluster.metadata.labels,
      postgresql: findIn("example-operators", "Cluster")["spec"].inheritedMetadata.labels,
    };
    for (const [name, ofPods] of Object.entries(labels)) {
      const policy = withOperators.find(
        ({ kind, metadata }) => kind === "NetworkPolicy" && metadata.name === `booking-events-${name}`,
      );
      expect(selects(policy?.["spec"].egress[0].to[0].podSelector, ofPods)).toBe(true);
    }
  });
});
