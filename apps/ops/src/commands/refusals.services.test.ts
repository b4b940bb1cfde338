import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { openRecords } from "@booking-events/queue";
import { expect, test } from "vitest";
import { runOps } from "../testing/run-ops.ts";

const now = new Date();
const environment = { REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() };
const requestId = "0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e";

async function ok(...args: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runOps(["refusals", ...args], { environment, now });
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return stdout;
}

test("shows what ingest refused, why, and by which secret", async () => {
  expect(await ok()).toBe("No such refusals are recorded.\n");
  const records = openRecords({
    ...{ redisServers: redisUrl(), prefix: environment.QUEUE_PREFIX, connectionName: "test", onError: () => {} },
  });
  const common = { requestId, kind: "create", ip: "192.0.2.1" };
  const acme = { ...common, at: new Date(now.getTime() - 60_000), partner: "acme", secretId: "s1", status: 422 };
  const stranger = { ...common, at: new Date(now.getTime() - 7_200_000), partner: null, secretId: null, status: 403 };
  const refusals = [
    { ...acme, code: "invalid-data", violations: ["consumerPhone:null", "agentEmail:malformed"] },
    { ...stranger, code: "unknown-secret", violations: [] },
  ];
  // The writer does not wait for a connection that is still being opened.
  await waitFor(() => records.writeRefusals(refusals).then(() => true));
  records.close();

  const shown = await ok("--partner", "acme", "--since", "1h");
  expect(shown.split("\n")).toHaveLength(3);
  for (const part of ["422", "invalid-data consumerPhone:null agentEmail:malformed", "acme", "s1", requestId]) {
    expect(shown).toContain(part);
  }
  expect(JSON.parse(await ok("--json"))).toMatchObject([{ status: 422 }, { status: 403, partner: null }]);
  const { stdout, stderr } = await runOps(["refusals", "--json", "--limit", "1"], { environment });
  expect(JSON.parse(stdout)).toHaveLength(1);
  expect(stderr).toMatch(/^There are more than 1\./);
  expect(JSON.parse(await ok("--json", "--since", "1h"))).toMatchObject([{ status: 422 }]);
  expect(JSON.parse(await ok("--json", "--strangers"))).toMatchObject([{ status: 403 }]);
  expect((await runOps(["refusals", "--partner", "acme", "--strangers"], { environment })).exitCode).toBe(2);
});

test("says so if Redis does not answer", async () => {
  const unreachable = { ...environment, REDIS_URL: "redis://127.0.0.1:1" };
  const { exitCode, stderr } = await runOps(["refusals"], { environment: unreachable });
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringMatching(/^Redis at .* does not answer/) });
});
