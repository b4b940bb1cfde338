import { createLogger, createMetrics } from "@booking-events/runtime";
import { expect, test } from "vitest";
import { RequestObserver } from "./observe-requests.ts";

test("each accepted event has a line of its own, with its partner, kind, id and duration", () => {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  const logger = createLogger({ name: "test", level: "info" }, { write });
  const observer = new RequestObserver("ingest", logger, createMetrics("ingest"));
  const accept = (partner: string, kind: string, eventId: string, durationMs: number) => {
    const ids = { requestId: eventId, partner, secretId: "s1", eventId };
    observer.observe({ ...ids, method: "POST", kind, status: 200, outcome: "accepted", durationMs });
  };

  accept("acme", "create", "id-1", 1.26);
  accept("acme", "update", "id-2", 2);
  accept("globex", "create", "id-3", 3);
  accept("acme", "create", "id-4", 4);

  const same = { level: "info", name: "test", method: "POST", status: 200, outcome: "accepted", msg: "request" };
  const [create, update] = ["/booking-event/create/:secret", "/booking-event/update/:secret"];
  expect(lines.map(({ time: _, pid: __, ...line }) => line)).toEqual([
    { ...same, partner: "acme", route: create, eventId: "id-1", durationMs: 1.3 },
    { ...same, partner: "acme", route: update, eventId: "id-2", durationMs: 2 },
    { ...same, partner: "globex", route: create, eventId: "id-3", durationMs: 3 },
    { ...same, partner: "acme", route: create, eventId: "id-4", durationMs: 4 },
  ]);
});

test("a refused event is logged without what tells its booking", () => {
  const lines: string[] = [];
  const logger = createLogger({ name: "test", level: "info" }, { write: (line) => lines.push(line) });
  const observer = new RequestObserver("ingest", logger, createMetrics("ingest"));
  const refused = { requestId: "id-1", partner: "acme", kind: "create", status: 422, outcome: "invalid-data" };
  observer.observe({ ...refused, subject: "acme digest" });
  observer.flush();
  expect(lines.join()).toContain("id-1");
  expect(lines.join()).not.toContain("digest");
});
