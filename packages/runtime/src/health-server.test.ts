import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { startHealthServer } from "./health-server.ts";
import { Counter, createMetrics, Gauge } from "./metrics.ts";

/** What Prometheus sends. */
const prometheusAccepts =
  "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75," +
  "text/plain;version=0.0.4;q=0.5,*/*;q=0.1";

test("metrics are OpenMetrics for a client that accepts it, in any order of requests", async () => {
  const metrics = createMetrics("test");
  const registers = [metrics];
  new Counter({ name: "things_total", help: 'Things, "so called".', labelNames: ["kind"], registers }).inc({
    kind: "a",
  });
  new Gauge({ name: "unknown_seconds", help: "Not known.", registers }).set(Number.NaN);
  const server = await startHealthServer({ host: "127.0.0.1", port: 0, findProblems: () => [], metrics });
  const { port } = server.address() as AddressInfo;
  const scrape = async (accept: string) => {
    const response = await fetch(`http://127.0.0.1:${port}/metrics`, { headers: { Accept: accept } });
    return { type: response.headers.get("Content-Type"), text: await response.text() };
  };
  try {
    for (const _ of [1, 2]) {
      const open = await scrape(prometheusAccepts);
      expect(open.type).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
      expect(open.text).toContain(
        '# HELP things Things, \\"so called\\".\n# TYPE things counter\nthings_total{kind="a",process="test"} 1\n',
      );
      expect(open.text).toContain('unknown_seconds{process="test"} NaN\n');
      // A gauge of Node's whose name ends like a counter's.
      expect(open.text).toContain("# TYPE nodejs_active_handles_total gauge\n");
      expect(open.text).not.toMatch(/\n\n/);
      expect(open.text).toMatch(/\n# EOF\n$/);

      const plain = await scrape("*/*");
      expect(plain.type).toBe("text/plain; version=0.0.4; charset=utf-8");
      expect(plain.text).toContain('# TYPE things_total counter\nthings_total{kind="a",process="test"} 1\n');
      expect(plain.text).not.toContain("# EOF");
    }
  } finally {
    server.close();
    server.closeAllConnections();
    await once(server, "close");
  }
});
