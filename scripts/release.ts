/**
 * `npm run release`: makes in dist/release what a release consists of, and says what stands against it. `npm run release
 * -- --publish` then publishes the packages of it, and runs nothing that others have written but npm: it has credentials.
 * The workflow "Release" runs both, and does the rest: images, tag and notes.
 */
import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { build } from "./build.ts";
import { binary, root } from "./clone.ts";
import { packPackage, published } from "./pack-package.ts";
import { say, showProblem, step } from "./progress.ts";
import { readReleaseNotes } from "./release-notes.ts";
import { findPublishProblems, findReleaseProblems, noteReady } from "./release-problems.ts";
import { runCommand } from "./run-command.ts";

const { publish } = parseArgs({ options: { publish: { type: "boolean", default: false } } }).values;
const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
const folder = join(root, "dist/release");

try {
  process.exit(await (publish ? publishPrepared() : prepare()));
} catch (error) {
  showProblem(error);
  process.exit(1);
}

async function prepare(): Promise<number> {
  say(`Dry run of the release of ${version}: nothing is published.`);
  await noteReady(root, false);
  let isReady = true;
  for (const find of [
    () => findReleaseProblems(root),
    () => findFailures("verify"),
    () => findFailures("check:dependencies"),
  ]) {
    const found = await find();
    sayProblems(found);
    isReady &&= found.length === 0;
  }

  await step("npm run build", buildAndPack);
  say(`\nIn dist/release:\n${await writeChecksums()}`);
  for (const name of published) await publishPackage(name, ["--dry-run"]);
  say(
    `\nWith --publish, the packages would be in the registry now. Then the workflow pushes images and the tag v${version}.`,
  );
  await noteReady(root, isReady);
  say(isReady ? "✓ Ready." : "✗ Not ready: see what is marked so above.");
  return isReady ? 0 : 1;
}

async function publishPrepared(): Promise<number> {
  say(`Release of ${version}`);
  const problems = await findPublishProblems(root);
  sayProblems(problems);
  if (problems.length > 0) return 1;
  for (const name of published) await publishPackage(name);
  return 0;
}

function sayProblems(problems: string[]): void {
  for (const problem of problems) say(`✗ ${problem}`);
}

/** Runs a script, and shows the end of its output only if it fails. */
async function findFailures(script: string): Promise<string[]> {
  try {
    await step(`npm run ${script}`, () => runCommand("npm", ["run", "--silent", script], { cwd: root }));
    return [];
  } catch (error) {
    const lines = String(error)
      .split("\n")
      .filter((line) => line.trim() !== "");
    return [[`npm run ${script} fails:`, ...lines.slice(-50)].join("\n  ")];
  }
}

async function buildAndPack(): Promise<void> {
  // A build leaves what an earlier one made of a file that is gone.
  for (const name of published) await rm(join(root, "packages", name, "dist"), { recursive: true, force: true });
  await build();
  await rm(folder, { recursive: true, force: true });
  await mkdir(folder, { recursive: true });
  for (const name of published) await packPackage(name, folder);
  await writeSoftwareBills();
  await copyFile(join(root, "THIRD-PARTY"), join(folder, "THIRD-PARTY"));
  const notes = readReleaseNotes(await readFile(join(root, "CHANGELOG.md"), "utf8"), version);
  if (notes !== undefined) await writeFile(join(folder, "NOTES.md"), `${notes}\n`);
}

/** What each image and package consists of, in CycloneDX. */
async function writeSoftwareBills(): Promise<void> {
  const shipped = ["./apps/*", ...published.map((name) => `./packages/${name}`)].flatMap((path) => ["--filter", path]);
  const format = [
    "--sbom-format",
    "cyclonedx",
    "--prod",
    "--no-optional",
    "--split",
    "--out",
    `${folder}/%s-%v.cdx.json`,
  ];
  await runCommand(binary("pnpm"), [...shipped, "sbom", ...format], { cwd: root });
}

/** @returns the lines of SHA256SUMS, which `sha256sum --check` reads */
async function writeChecksums(): Promise<string> {
  let lines = "";
  for (const name of (await readdir(folder)).sort()) {
    const digest = createHash("sha256").update(await readFile(join(folder, name)));
    lines += `${digest.digest("hex")}  ${name}\n`;
  }
  await writeFile(join(folder, "SHA256SUMS"), lines);
  return lines;
}

/**
 * A release that was interrupted goes on with the first package that the registry does not have.
 *
 * @throws Error if the registry has another package of this version: one version must not consist of two commits
 */
async function publishPackage(directory: string, options: string[] = []): Promise<void> {
  const name = `@booking-events/${directory}`;
  const tarball = join(folder, `booking-events-${directory}-${version}.tgz`);
  const known = await runCommand("npm", ["view", `${name}@${version}`, "dist.integrity"], { cwd: folder }).catch(
    () => "",
  );
  if (known.trim() !== "") {
    const digest = createHash("sha512")
      .update(await readFile(tarball))
      .digest("base64");
    if (known.trim() === `sha512-${digest}`) return say(`${name} ${version} is published already.`);
    throw new Error(`The registry has a ${name} ${version} that is not this one. Raise the version.`);
  }
  await step(["npm publish", ...options, name].join(" "), () =>
    runCommand("npm", ["publish", ...options, tarball], { cwd: folder }),
  );
}
