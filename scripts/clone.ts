import { join } from "node:path";

/** Where things are in this clone. Commands run at its root. */
export const root = join(import.meta.dirname, "..");
/** What a start keeps: data, logs, secrets. To begin with nothing, delete it. */
export const dataDir = join(root, ".data");
export const logDir = join(dataDir, "log");
export const environmentFile = join(dataDir, "env");
/** What ops reads after it. */
export const opsEnvironmentFile = join(dataDir, "ops.env");
export const demoSecretFile = join(dataDir, "demo-secret");
/** The password of the console. */
export const consolePasswordFile = join(dataDir, "console-password");
/** Says which process runs this clone. */
export const starterFile = join(dataDir, "starter.json");

export const binaries = join(root, "node_modules", ".bin");
export const binary = (name: string) => join(binaries, name);
