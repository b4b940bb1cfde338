import { expect, test } from "vitest";
import { createMetrics, createTallies } from "./metrics.ts";

test("tallies are series of one counter, which a scrape reads and does not reset", async () => {
  const metrics = createMetrics("test");
  const tallyOf = createTallies({
    name: "things_total",
    help: "Things.",
    labelNames: ["kind", "status"],
    registers: [metrics],
  });
  tallyOf("create", "200").count += 2;
  tallyOf("create", "422").count += 1;
  const again = tallyOf("create", "200");
  again.count += 1;
  for (const expected of [3, 4]) {
    const text = await metrics.metrics();
    expect(text).toContain("# TYPE things_total counter");
    expect(text.match(/^things_total.*$/gm)).toEqual([
      `things_total{kind="create",status="200",process="test"} ${expected}`,
      'things_total{kind="create",status="422",process="test"} 1',
    ]);
    again.count += 1;
  }
});
