import { globSync, readFileSync } from "node:fs";
import { registerHooks } from "node:module";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";

// The parser imports JSON without an import attribute, which bundlers accept and Node does not.
registerHooks({
  resolve(specifier, context, next) {
    const resolved = next(specifier, context);
    return specifier.endsWith(".json") ? { ...resolved, importAttributes: { type: "json" } } : resolved;
  },
});
const { convertWorkflowTemplate, NoOperationTraceWriter, parseWorkflow } = await import("@actions/workflow-parser");

const root = join(import.meta.dirname, "../..");
const workflows = globSync(".github/workflows/*", { cwd: root });
const read = (path: string) => readFileSync(join(root, path), "utf8");
const { scripts } = JSON.parse(read("package.json"));

interface Workflow {
  permissions: unknown;
  jobs: Record<string, { if?: string; permissions?: unknown; steps: { run?: string }[] }>;
}

/** The faults that GitHub's own parser finds. It needs no network. */
async function findFaults(content: string): Promise<string[]> {
  const { context, value } = parseWorkflow({ name: "workflow.yml", content }, new NoOperationTraceWriter());
  if (value !== undefined) await convertWorkflowTemplate(context, value);
  return context.errors.getErrors().map(({ message }) => message);
}

test("there are workflows", () => expect(workflows).not.toEqual([]));

test.each([
  ["a misspelt key", ["timeout-minutes", "timeout-minute"]],
  ["an unknown context", ["github.ref", "git.ref"]],
  ["a job that nothing runs", ["runs-on", "runs-off"]],
] as const)("%s would be found", async (_fault, [right, wrong]) => {
  const content = read(".github/workflows/ci.yml");
  expect(content).toContain(right);
  expect(await findFaults(content.replace(right, wrong))).not.toEqual([]);
});

describe.each(workflows)("%s", (path) => {
  const content = read(path);
  const { permissions, jobs }: Workflow = parse(content);

  test("is a workflow that GitHub accepts", async () => {
    expect(await findFaults(content)).toEqual([]);
  });

  test("pins each action by its commit, and names the version that it is", () => {
    const uses = content.match(/\buses:.*/g) ?? [];
    expect(uses).not.toEqual([]);
    for (const action of uses) expect(action).toMatch(/^uses: [\w-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  test("may read the repository, and nothing else; only one job of a release may publish, if it is told to", () => {
    expect(permissions).toEqual({ contents: "read" });
    for (const [name, { if: condition, permissions: more, steps }] of Object.entries(jobs)) {
      const isRelease = path.endsWith("release.yml");
      const isPublishing = isRelease && name === "publish";
      const own = isPublishing
        ? { contents: "write", "id-token": "write", packages: "write" }
        : { actions: "read", contents: "read" };
      expect(more).toEqual(isRelease ? own : undefined);
      if (isPublishing) expect(condition).toBe("inputs.publish");
      else expect(JSON.stringify(steps)).not.toMatch(/secrets|--push|--publish/);
      // Packages that it installs could read the credentials.
      if (isPublishing) expect(JSON.stringify(steps)).not.toMatch(/npm (run|test|ci|install)|"npm|pnpm/);
    }
  });

  test("runs scripts that package.json has", () => {
    const commands = Object.values(jobs).flatMap(({ steps }) => steps.flatMap(({ run = "" }) => run.split("\n")));
    const called = commands.flatMap((command) => /^npm (?:run )?([\w:]+)/.exec(command)?.[1] ?? []);
    expect(called).not.toEqual([]);
    for (const script of called) expect(scripts).toHaveProperty([script]);
  });
});
