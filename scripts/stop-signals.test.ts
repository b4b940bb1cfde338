import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";

const code = `
  const { stopRequested } = await import(${JSON.stringify(join(import.meta.dirname, "stop-signals.ts"))});
  const stop = stopRequested({ force: () => { console.log("forced"); process.exit(3); } });
  stop.addEventListener("abort", () => console.log("stop"));
  setInterval(() => {}, 1000);
  console.log("up");`;

test("signals that come together are one request; a deliberate second one forces", async () => {
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    output += text;
  });
  const ended = once(child, "exit");
  await once(child.stdout, "data");
  child.kill("SIGINT");
  await once(child.stdout, "data");
  for (const signal of ["SIGINT", "SIGTERM", "SIGINT"] as const) child.kill(signal);
  await sleep(1_100); // By time alone, a second signal is deliberate.
  expect(output).toBe("up\nstop\n");
  child.kill("SIGINT");
  expect(await ended).toEqual([3, null]);
  expect(output).toBe("up\nstop\nforced\n");
});

test("the end of the process that started us is a request to stop", async () => {
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  if (!child.stdout) throw new Error("stdout is a pipe");
  await once(child.stdout, "data");
  child.disconnect();
  const [text] = await once(child.stdout, "data");
  expect(String(text)).toBe("stop\n");
  child.kill("SIGKILL");
});
