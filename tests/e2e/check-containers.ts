/**
 * `npm run check:containers`: what Docker Compose makes of our files, and, where an engine and the images are, what the
 * docs describe: start, scale, update, kill, fail over, stop. Everything is in a folder and a Compose project of its own.
 */
import { join } from "node:path";
import { stopRequested } from "@booking-events/scripts/stop-signals";
import { checkFiles } from "./containers/check-files.ts";
import { Deployment, pullMissingImages, tryCommand } from "./containers/deployment.ts";
import { trySingleHost } from "./containers/single-host.ts";
import { tryStandbys } from "./containers/standbys.ts";
import { step } from "./containers/step.ts";

const root = join(import.meta.dirname, "../..");
const signal = stopRequested({ force: () => process.exit(130) });

async function checkContainers(): Promise<void> {
  if ((await tryCommand(join(root, "deploy/check-compose"))) === undefined)
    return skip("there is no Docker Compose of a version that our files need (deploy/check-compose)");
  await withDeployment((deployment) => checkFiles(deployment, step));
  if ((await tryCommand("docker", "version")) === undefined) return skip("no Docker engine answers");
  const missing = await pullMissingImages(root);
  if (missing !== undefined) return skip(`the image ${missing} is not here and cannot be pulled`);
  await withDeployment(async (deployment) => {
    await step("build", () => deployment.compose("--profile=*", "build"));
    await trySingleHost(deployment, step);
    await step("down", () => deployment.down());
    await tryStandbys(deployment, step);
    await step("down with standbys", () => deployment.down());
  });
}

function skip(reason: string): void {
  console.log(`Skipped: nothing was started, because ${reason}.`);
}

async function withDeployment(work: (deployment: Deployment) => Promise<void>): Promise<void> {
  const deployment = await Deployment.create(root, signal);
  try {
    await work(deployment);
  } finally {
    await deployment.remove();
  }
}

try {
  await checkContainers();
} catch (error) {
  if (!signal.aborted) console.error(String(error));
  process.exitCode = signal.aborted ? 130 : 1;
}
