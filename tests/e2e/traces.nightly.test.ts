import { waitFor } from "@booking-events/harness";
import { type OtlpReceiver, startOtlpReceiver } from "@booking-events/harness/otlp-receiver";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

const secret = "a-secret-of-the-test-with-enough-characters";
const surroundings = prepareSurroundings(secret);
const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

let collector: OtlpReceiver;
let environment: Record<string, string>;

beforeEach(async () => {
  collector = await startOtlpReceiver();
  environment = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "50" };
});
afterEach(() => collector.close());

function startBoth(settings: Record<string, string>): Promise<[RunningApp, RunningApp]> {
  const options = { environment: settings };
  return Promise.all([surroundings().start("ingest", options), surroundings().start("worker", options)]);
}

function post(ingest: RunningApp, reference: string): Promise<string> {
  return postAccepted(ingest, { secret, reference, headers: { traceparent } });
}

async function untilApplied(reference: string): Promise<void> {
  await waitFor(async () => {
    const { rows } = await surroundings().pool.query("select state from bookings where reference = $1", [reference]);
    expect(rows).toEqual([{ state: "active" }]);
  });
}

describe("OpenTelemetry is", () => {
  /** Prints each module of OpenTelemetry that the process loads. prom-client loads OpenTelemetry's interfaces. */
  const printModules = `import { registerHooks } from "node:module";
    registerHooks({
      resolve(specifier, context, next) {
        const result = next(specifier, context);
        if (/\\/@opentelemetry\\/(?!api\\/)/.test(result.url)) console.log(result.url);
        return result;
      },
    });`;
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(printModules)}`;

  // What else switches it off is in the tests of createTracing.
  test("off by default: it is not loaded, and nothing is exported", async () => {
    const [ingest, worker] = await startBoth({ NODE_OPTIONS });
    await post(ingest, "TRIP-1");
    await untilApplied("TRIP-1");
    for (const app of [ingest, worker]) {
      expect(await app.stop()).toBe(0);
      expect(app.output()).not.toContain("@opentelemetry");
    }
    expect(collector.connectionCount()).toBe(0);
  });

  test("on by an endpoint alone", async () => {
    const [ingest] = await startBoth({ ...environment, NODE_OPTIONS });
    await post(ingest, "TRIP-1");
    await waitFor(() => expect(ingest.output()).toContain("/@opentelemetry/sdk-trace/"));
    await waitFor(() => expect(collector.spans()).not.toEqual([]));
  });
});

test.each(["hangs", "is down", "refuses"])("a collector that %s delays no event and no shutdown", async (state) => {
  if (state === "hangs") collector.setMode("hang");
  else if (state === "refuses") collector.setMode("refuse");
  else await collector.close();
  const small = { OTEL_BSP_MAX_QUEUE_SIZE: "20", OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "10" };
  const [ingest, worker] = await startBoth({ ...environment, ...small });
  for (let n = 0; n < 30; n += 1) await post(ingest, `TRIP-${n}`);
  for (let n = 0; n < 30; n += 1) await untilApplied(`TRIP-${n}`);
  for (const app of [ingest, worker]) {
    expect(await app.stop()).toBe(0);
    expect(app.logLines().filter(({ msg }) => String(msg).startsWith("spans are lost"))).toHaveLength(1);
  }
});
