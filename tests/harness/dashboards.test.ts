import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

interface Dashboard {
  panels: { title: string; type: string; gridPos: { x: number; y: number; w: number; h: number } }[];
}

const root = join(import.meta.dirname, "../..");
const files = globSync("deploy/observability/dashboards/*.json", { cwd: root });

test("there are dashboards", () => expect(files).not.toEqual([]));

test.each(files)("no two panels of %s have the same place or name", (file) => {
  const { panels }: Dashboard = JSON.parse(readFileSync(join(root, file), "utf8"));
  expect(panels).not.toEqual([]);
  const names = panels.map(({ title }) => title);
  expect(names).toEqual([...new Set(names)]);
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, index) => `${x + (index % w)},${y + Math.floor(index / w)}`),
  );
  expect(cells).toEqual([...new Set(cells)]);
  // Grafana has 24 columns.
  for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
});
