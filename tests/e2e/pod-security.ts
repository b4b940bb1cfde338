interface Container {
  name: string;
  securityContext?: SecurityContext;
  ports?: { hostPort?: number }[];
}

interface SecurityContext {
  privileged?: boolean;
  procMount?: string;
  allowPrivilegeEscalation?: boolean;
  runAsNonRoot?: boolean;
  runAsUser?: number;
  capabilities?: { add?: string[]; drop?: string[] };
  seccompProfile?: { type: string };
  appArmorProfile?: { type: string };
  seLinuxOptions?: { type?: string; user?: string; role?: string };
  sysctls?: unknown[];
  windowsOptions?: { hostProcess?: boolean };
}

interface PodSpec {
  hostNetwork?: boolean;
  hostPID?: boolean;
  hostIPC?: boolean;
  securityContext?: SecurityContext;
  volumes?: Record<string, unknown>[];
  containers: Container[];
  initContainers?: Container[];
  ephemeralContainers?: Container[];
}

const volumeTypes = [
  "configMap",
  "csi",
  "downwardAPI",
  "emptyDir",
  "ephemeral",
  "image",
  "persistentVolumeClaim",
  "projected",
  "secret",
];
const selinuxTypes = ["", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"];

/**
 * Returns why Kubernetes would not admit a pod where the Pod Security standard `restricted` is enforced. Empty: it would.
 * Controls in the order of https://kubernetes.io/docs/concepts/security/pod-security-standards/
 */
export function findPodSecurityViolations(pod: PodSpec): string[] {
  const containers = [...pod.containers, ...(pod.initContainers ?? []), ...(pod.ephemeralContainers ?? [])];
  return [...findPodViolations(pod), ...containers.flatMap((container) => findContainerViolations(container, pod))];
}

function findPodViolations({ securityContext = {}, volumes = [], ...pod }: PodSpec): string[] {
  const badVolumes = volumes.filter((volume) =>
    Object.keys(volume).some((key) => key !== "name" && !volumeTypes.includes(key)),
  );
  return namesOf({
    "shares a namespace of the host": [pod.hostNetwork, pod.hostPID, pod.hostIPC].includes(true),
    "has a volume of a type that is not allowed": badVolumes.length > 0,
    // The standard allows some.
    "sets sysctls": (securityContext.sysctls ?? []).length > 0,
    ...contextViolations(securityContext),
  });
}

function findContainerViolations({ name, securityContext = {}, ports = [] }: Container, pod: PodSpec): string[] {
  const ofPod = pod.securityContext ?? {};
  const { capabilities = {} } = securityContext;
  const runAsNonRoot = securityContext.runAsNonRoot ?? ofPod.runAsNonRoot;
  const seccomp = securityContext.seccompProfile?.type ?? ofPod.seccompProfile?.type;
  return namesOf({
    "is privileged": securityContext.privileged === true,
    "takes a port of the host": ports.some(({ hostPort = 0 }) => hostPort !== 0),
    "changes /proc": (securityContext.procMount ?? "Default") !== "Default",
    "may gain privileges": securityContext.allowPrivilegeEscalation !== false,
    "may run as root": runAsNonRoot !== true,
    "has no seccomp profile": seccomp !== "RuntimeDefault" && seccomp !== "Localhost",
    "keeps capabilities": capabilities.drop?.includes("ALL") !== true,
    "adds capabilities": (capabilities.add ?? []).some((capability) => capability !== "NET_BIND_SERVICE"),
    ...contextViolations(securityContext),
  }).map((violation) => `${name} ${violation}`);
}

/** What neither a pod nor a container may say. */
function contextViolations(context: SecurityContext): Record<string, boolean> {
  const { appArmorProfile, seccompProfile, seLinuxOptions = {} } = context;
  const { type = "", user = "", role = "" } = seLinuxOptions;
  return {
    "is a process of a Windows host": context.windowsOptions?.hostProcess === true,
    "is not confined by AppArmor": appArmorProfile?.type === "Unconfined",
    "chooses its SELinux type, user or role": !selinuxTypes.includes(type) || user !== "" || role !== "",
    "is not confined by seccomp": seccompProfile?.type === "Unconfined",
    "runs as root": context.runAsUser === 0,
    "says that it may run as root": context.runAsNonRoot === false,
  };
}

function namesOf(violations: Record<string, boolean>): string[] {
  return Object.keys(violations).filter((name) => violations[name]);
}
