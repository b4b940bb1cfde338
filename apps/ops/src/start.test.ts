import { execFileSync } from "node:child_process";
import { fromSource } from "@booking-events/harness/app-process";
import { expect, test } from "vitest";

/** Each of them took a tenth of a command's start or more. */
test("a command that starts loads neither Node's fetch and WebSocket client nor the rules of breaking text", () => {
  const program = `
    let segmenters = 0;
    Intl.Segmenter = class extends Intl.Segmenter {
      constructor() {
        super();
        segmenters += 1;
      }
    };
    await import(${JSON.stringify(new URL("./program.ts", import.meta.url).href)});
    const loaded = process.moduleLoadList.filter((name) => name.includes("undici"));
    console.log(JSON.stringify({ loaded, segmenters }));`;
  const args = [...fromSource("--eval"), program, "--input-type=module"];
  const printed = execFileSync(process.execPath, args, { encoding: "utf8" });
  expect(JSON.parse(printed)).toEqual({ loaded: [], segmenters: 0 });
});
