import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { waitFor } from "@booking-events/harness/wait-for";
import { freePort } from "@booking-events/scripts/ports";
import { runCommand } from "@booking-events/scripts/run-command";

/** A container of the deployment, as `docker inspect` describes it. */
export interface Container {
  service: string;
  image: string;
  id: string;
  /** On the host. 0: it does not run. */
  pid: number;
  exitCode: number;
  startedAt: string;
  isRunning: boolean;
  /** Undefined: it has no check. */
  health: string | undefined;
  /** What it is stopped by, if the image or the service says so. */
  stopSignal: string | undefined;
}

/**
 * The service in a folder of its own, as an operator has it: a copy of what git tracks or would add, with the .env that
 * deploy/create-env makes. Nothing of it meets another deployment on this host.
 */
export class Deployment {
  readonly folder: string;
  readonly name: string;
  readonly #signal: AbortSignal;

  private constructor(folder: string, name: string, signal: AbortSignal) {
    this.folder = folder;
    this.name = name;
    this.#signal = signal;
  }

  static async create(root: string, signal: AbortSignal): Promise<Deployment> {
    const folder = await mkdtemp(join(tmpdir(), "booking-events-containers-"));
    const name = basename(folder).toLowerCase();
    const deployment = new Deployment(folder, name, signal);
    const copy = 'git ls-files -z --cached --others --exclude-standard | tar --null -cf - -T - | tar -C "$1" -xf -';
    await runCommand("sh", ["-c", copy, "sh", folder], { cwd: root, signal });
    await deployment.#run("deploy/create-env", []);
    await deployment.set({ COMPOSE_PROJECT_NAME: name, RELEASE: name });
    await writeHostFile(join(folder, "host.yml"));
    return deployment;
  }

  /** Changes .env, as an operator does in an editor. */
  async set(settings: Record<string, string>): Promise<void> {
    const file = join(this.folder, ".env");
    const lines = (await readFile(file, "utf8")).split("\n");
    const others = lines.filter((line) => !Object.hasOwn(settings, line.split("=")[0] ?? ""));
    const changed = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
    await writeFile(file, [...others, ...changed, ""].join("\n"));
  }

  /** By the name of their variable in .env. */
  async passwords(): Promise<Map<string, string>> {
    const lines = await readFile(join(this.folder, ".env"), "utf8");
    return new Map(Array.from(lines.matchAll(/^(\w+_PASSWORD)=(.+)$/gm), ([, name = "", value = ""]) => [name, value]));
  }

  compose(...args: string[]): Promise<string> {
    return this.#run("docker", ["compose", "--progress", "quiet", ...args]);
  }

  ops(...args: string[]): Promise<string> {
    return this.#run("deploy/ops", args);
  }

  /** A command of the docs, as it is typed in a shell in the folder of the deployment. */
  type(command: string): Promise<string> {
    return this.#run("sh", ["-euc", command]);
  }

  /** @returns one value for each line that PostgreSQL's psql prints */
  async query(sql: string, service = "postgres"): Promise<string[]> {
    const output = await this.compose(
      "exec",
      "--no-TTY",
      service,
      "psql",
      "--no-align",
      "--tuples-only",
      "--command",
      sql,
    );
    return output.split("\n").filter((line) => line !== "");
  }

  /**
   * Types the commands of a page as they stand there.
   *
   * @param part of the block that is meant
   */
  async typeDocumented(page: string, part: string): Promise<void> {
    const text = await readFile(join(this.folder, page), "utf8");
    const block = Array.from(text.matchAll(/^ *```sh\n(.*?)^ *```$/gms), ([, commands = ""]) => commands).find(
      (commands) => commands.includes(part),
    );
    assert(block, `${page} has no commands with ${part}`);
    await this.type(
      block
        .replaceAll(/compose (exec|run --rm) /g, "compose $1 --no-TTY ")
        .replaceAll("booking-events_", `${this.name}_`),
    );
  }

  /** Makes images of a next release: those of this one with another migration. */
  async buildNext(release: string, migration: string): Promise<void> {
    const folder = join(this.folder, "next");
    await mkdir(folder);
    await writeFile(join(folder, "9999_next.sql"), migration);
    await writeFile(join(folder, "Dockerfile"), nextImage);
    const images = (await this.compose("--profile=*", "config", "--images")).split("\n");
    for (const image of new Set(images.filter((name) => name.startsWith("booking-events-")))) {
      const next = image.replace(/:.*/, `:${release}`);
      await this.#run("docker", ["build", "--quiet", `--build-arg=BASE=${image}`, `--tag=${next}`, folder]);
    }
  }

  async addPartner(id: string): Promise<string> {
    return JSON.parse(await this.ops("partners", "add", id, "--name", "Check", "--json")).secret;
  }

  /** @returns such as 127.0.0.1:32768 */
  async address(service: string, port: number): Promise<string> {
    return (await this.compose("port", service, String(port))).trim();
  }

  async containers(): Promise<Container[]> {
    const ids = (await this.compose("ps", "--all", "--quiet")).split("\n").filter((id) => id !== "");
    if (ids.length === 0) return [];
    const found = JSON.parse(await this.#run("docker", ["inspect", ...ids]));
    return found.map(({ Id, State, Config }: Inspected) => ({
      service: Config.Labels["com.docker.compose.service"],
      image: Config.Image,
      id: Id,
      pid: State.Pid,
      exitCode: State.ExitCode,
      startedAt: State.StartedAt,
      isRunning: State.Running,
      health: State.Health?.Status,
      stopSignal: Config.StopSignal,
    }));
  }

  async container(service: string): Promise<Container> {
    const found = (await this.containers()).find((container) => container.service === service);
    if (found === undefined) throw new Error(`There is no container of ${service}.`);
    return found;
  }

  /** As the kernel does: `docker kill` counts as a stop on purpose, after which Docker does not start it again. */
  async killProcess({ pid }: Container): Promise<void> {
    const inHost = ["run", "--rm", "--pid", "host", "--user", "root", "--network", "none", "--entrypoint", "sh"];
    await this.#run("docker", [...inHost, "redis:8.10.2-alpine", "-c", `kill -9 ${pid}`]);
  }

  async untilHealthy(service: string, timeoutMs = 90_000): Promise<void> {
    await waitFor(
      async () => {
        const ofService = (await this.containers()).filter((container) => container.service === service);
        const unwell = ofService.filter(({ isRunning, health = "healthy" }) => !isRunning || health !== "healthy");
        if (ofService.length === 0 || unwell.length > 0) throw new Error(`${service} is ${JSON.stringify(unwell)}`);
      },
      { timeoutMs, intervalMs: 500 },
    );
  }

  /** Removes the containers and their data, and checks that nothing is left. */
  async down(): Promise<void> {
    await this.compose("--profile=*", "down", "--volumes", "--remove-orphans");
    const ofProject = ["--quiet", "--filter", `label=com.docker.compose.project=${this.name}`];
    for (const list of [
      ["container", "ls", "--all"],
      ["volume", "ls"],
      ["network", "ls"],
    ])
      assert.equal(await this.#run("docker", [...list, ...ofProject]), "", `left behind: ${list}`);
  }

  /** Leaves nothing on the host, also after a failure or an interruption. */
  async remove(): Promise<void> {
    const clean = (file: string, ...args: string[]) => tryCommand(file, ...args);
    const project = ["compose", "--project-name", this.name];
    await clean("docker", ...project, "down", "--volumes", "--remove-orphans", "--timeout=5");
    const images = (await clean("docker", "image", "ls", "--quiet", `booking-events-*:${this.name}*`)) ?? "";
    const ids = images.split("\n").filter((id) => id !== "");
    if (ids.length > 0) await clean("docker", "image", "rm", "--force", ...new Set(ids));
    // The containers gave two folders to their own user.
    await clean("docker", "run", "--rm", "--network=none", `--volume=${this.folder}:/folder`, ...emptyFolders);
    await rm(this.folder, { recursive: true, force: true });
  }

  /** A new shell knows nothing of the one before. */
  #run(file: string, args: readonly string[], signal = this.#signal): Promise<string> {
    return runCommand(file, args, { cwd: this.folder, env: freshEnvironment(), signal });
  }
}

const emptyFolders = ["--entrypoint=rm", "redis:8.10.2-alpine", "-rf", "/folder/partners", "/folder/backups"];

const nextImage = `ARG BASE
FROM $BASE
USER root
COPY 9999_next.sql /
RUN find /app -type d -path '*/@booking-events/store/migrations' -exec cp /9999_next.sql {} ';'
USER node
`;

/**
 * Ports of the host may be taken. Docker would choose others at each start of a container.
 *
 * Where the check runs in a container itself, Docker refuses to follow the mounts of its disk.
 */
async function writeHostFile(path: string): Promise<void> {
  const containerPorts = {
    ingest: 8080,
    lookup: 8080,
    webhooks: 8083,
    console: 8082,
    caddy: 443,
    prometheus: 9090,
    alertmanager: 9093,
    grafana: 3000,
  };
  const lines = await Promise.all(
    Object.entries(containerPorts).map(async ([service, port]) => {
      return `  ${service}: { ports: !override ["127.0.0.1:${await freePort()}:${port}"] }`;
    }),
  );
  const disk = '  node-exporter: { volumes: !override ["/:/host:ro", "./backups:/backups:ro"] }';
  await writeFile(path, ["services:", ...lines, disk, ""].join("\n"));
}

interface Inspected {
  Id: string;
  State: {
    Pid: number;
    ExitCode: number;
    StartedAt: string;
    FinishedAt: string;
    Running: boolean;
    Health?: { Status: string };
  };
  Config: { Image: string; Labels: Record<string, string>; StopSignal?: string };
}

/** What docker needs, and nothing that could stand in for .env. */
function freshEnvironment(): NodeJS.ProcessEnv {
  const kept = Object.entries(process.env).filter(([name]) => /^(PATH|HOME|USER|LANG|TMPDIR|DOCKER_\w+)$/.test(name));
  return Object.fromEntries(kept);
}

/**
 * Pulls the images that are not here.
 *
 * @returns the first one that cannot be pulled; undefined: all are here
 */
export async function pullMissingImages(root: string): Promise<string | undefined> {
  const files = await Promise.all(
    ["docker-compose.yml", "deploy/ha/compose.yml", "Dockerfile"].map((file) => readFile(join(root, file), "utf8")),
  );
  const named = files.flatMap((text) => [...text.matchAll(/^(?: +image:|FROM) ([\w./-]+:[\w.-]+)/gm)]);
  for (const image of new Set(named.flatMap(([, name = ""]) => name))) {
    if ((await tryCommand("docker", "image", "inspect", image)) !== undefined) continue;
    if ((await tryCommand("docker", "pull", "--quiet", image)) === undefined) return image;
  }
  return undefined;
}

/** @returns what the command printed; undefined: it failed, or is missing */
export async function tryCommand(file: string, ...args: string[]): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(file, args, { env: freshEnvironment() }, (error, stdout) => resolve(error === null ? stdout : undefined));
  });
}
