import { execFile, spawn, spawnSync } from "node:child_process";
import { existsSync, rmSync } from "node:fs";
import { copyFile, cp, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";

const run = promisify(execFile);
const clients = join(import.meta.dirname, "../../docs/clients");
const adapters = join(import.meta.dirname, "partner-languages");

/** A language for which partners get a client. */
export interface PartnerLanguage {
  name: string;
  /** Of its samples, without the ending. */
  sample: string;
  /** Programs that it needs, and what installs them on Debian. */
  needs: { program: string; args: string[] }[];
  packages: string;
  /** Of the program in `tests/harness/partner-languages` that reads a call from each line and prints its result. */
  adapter: string;
  /** How a program of the language is told to use a proxy on this machine. */
  proxy: (port: number) => { environment?: Record<string, string>; args?: string[] };
  /** Returns the command that runs a program in a folder with the clients. */
  command: (folder: string, file: string) => Promise<[program: string, ...args: string[]]>;
}

const inEnvironment = (port: number) => ({ environment: { HTTPS_PROXY: `http://127.0.0.1:${port}` } });

const mcs = ["-langversion:latest", "-nologo", "-r:System.Net.Http.dll", "-r:System.Numerics.dll"];

export const partnerLanguages: PartnerLanguage[] = [
  {
    name: "TypeScript",
    sample: "typescript.ts",
    needs: [],
    packages: "",
    adapter: "adapter.js",
    // https://nodejs.org/api/http.html#built-in-proxy-support
    proxy: (port) => ({ environment: { HTTPS_PROXY: `http://127.0.0.1:${port}`, NODE_USE_ENV_PROXY: "1" } }),
    command: async (_, file) => [process.execPath, file],
  },
  {
    name: "Python",
    sample: "python.py",
    needs: [{ program: "python3", args: ["-c", "import ssl"] }],
    packages: "python3",
    adapter: "adapter.py",
    proxy: inEnvironment,
    command: async (_, file) => ["python3", file],
  },
  {
    name: "PHP",
    sample: "php.php",
    needs: [{ program: "php", args: ["-r", "exit(extension_loaded('curl') ? 0 : 1);"] }],
    packages: "php-cli php-curl",
    adapter: "adapter.php",
    proxy: inEnvironment,
    command: async (_, file) => ["php", file],
  },
  {
    name: "Java",
    sample: "java.java",
    needs: [{ program: "javac", args: ["--version"] }],
    packages: "openjdk-17-jdk-headless",
    adapter: "Adapter.java",
    proxy: (port) => ({ args: ["-Dhttps.proxyHost=127.0.0.1", `-Dhttps.proxyPort=${port}`] }),
    async command(folder, file) {
      const options = ["--release", "11", "-Xlint:all", "-Werror", "-d", folder];
      if (!existsSync(join(folder, "BookingEvents.class")))
        await run("javac", [...options, join(folder, "BookingEvents.java")]);
      return ["java", "-XX:TieredStopAtLevel=1", "--class-path", folder, file];
    },
  },
  {
    name: "C#",
    sample: "csharp.cs",
    needs: [
      { program: "mcs", args: ["--version"] },
      { program: "mono", args: ["--version"] },
    ],
    packages: "mono-mcs mono-runtime libmono-system-net-http4.0-cil libmono-system-numerics4.0-cil",
    adapter: "Adapter.cs",
    // From which the adapter sets the default proxy.
    proxy: inEnvironment,
    async command(folder, file) {
      const program = `${file.replace(/\.cs$/, "")}.exe`;
      await run("mcs", [...mcs, `-out:${program}`, file, "BookingEvents.cs"], { cwd: folder });
      return ["mono", join(folder, program)];
    },
  },
];

/** @throws Error that names the packages to install, if a program is missing */
export function requireLanguage({ name, needs, packages }: PartnerLanguage): void {
  const missing = needs.filter(({ program, args }) => spawnSync(program, args).status !== 0);
  if (missing.length === 0) return;
  const programs = missing.map(({ program }) => program).join(" and ");
  throw new Error(`${programs} for ${name} cannot run here. Install them: apt-get install ${packages}`);
}

/** A folder with the clients, as a partner has them beside a program. The caller removes it. */
export async function copyClients(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "booking-events-clients-"));
  await cp(clients, folder, { recursive: true });
  return folder;
}

export interface Adapter {
  /** Resolves to what it prints for this call. Rejects if it has printed something else, or has ended. */
  ask(call: object): Promise<string>;
  stop(): void;
}

/**
 * Starts the language's program, once for many calls: to start a process for each would take longer than all calls.
 *
 * @param proxyPort of a proxy on this machine
 */
export async function startAdapter(language: PartnerLanguage, proxyPort?: number): Promise<Adapter> {
  requireLanguage(language);
  const folder = await copyClients();
  await copyFile(join(adapters, language.adapter), join(folder, language.adapter));
  const [program, ...args] = await language.command(folder, language.adapter);
  const proxy = proxyPort === undefined ? undefined : language.proxy(proxyPort);
  const env = { ...process.env, ...proxy?.environment };
  const child = spawn(program, [...(proxy?.args ?? []), ...args], { cwd: folder, env });
  child.once("close", () => rmSync(folder, { recursive: true }));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  return {
    async ask(call) {
      // In ASCII, since some languages end a line at U+2028, too.
      const line = JSON.stringify(call).replaceAll(
        /[\u007f-\uffff]/g,
        (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
      );
      child.stdin.write(`${line}\n`);
      const { value, done } = await lines.next();
      if (done || errors !== "") throw new Error(`${program} printed: ${errors}`);
      return value;
    },
    stop: () => child.stdin.end(),
  };
}
