import { waitFor } from "@booking-events/harness";
import { fetchAsPartner } from "@booking-events/harness/fetch-as-partner";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { expect, test } from "vitest";
import { postEvent } from "./post-event.ts";
import { shareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-untidy-tests-0123456789a";
const shared = shareSurroundings(secret);
const { running } = shared;

/** Each names the same booking as the clean reference. */
const untidy = {
  "a line break at the end": ["S-9\r\n", "S-9"],
  "white space around": [" \t\u3000Z 1 ", "Z 1"],
  "a decomposed letter": ["Zu\u0308rich", "Zürich"],
  "a no-break space": ["A\u00a01", "A 1"],
  "a zero-width space": ["N\u200b-1", "N-1"],
  "a byte order mark": ["\ufeffB-1", "B-1"],
};

async function post(kind: string, fields: object): Promise<unknown> {
  const response = await postEvent(await running("ingest"), { secret, kind, fields });
  expect(response.status).toBe(200);
  const { eventId, warnings = [] } = (await response.json()) as { eventId: string; warnings?: { code: string }[] };
  await untilApplied(eventId);
  return warnings.map(({ code }) => code);
}

async function untilApplied(eventId: string): Promise<void> {
  await running("worker");
  await waitFor(async () => {
    const { rows } = await shared.pool.query("select id from booking_events where id = $1", [eventId]);
    expect(rows).toHaveLength(1);
  });
}

async function ask(path: string, init: RequestInit = {}): Promise<string> {
  const response = await fetchAsPartner(`${(await running("lookup")).url}/booking-event/${path}`, init);
  expect(response.status).toBe(200);
  return response.text();
}

async function readBookings(reference: string): Promise<unknown> {
  const { rows } = await shared.pool.query(
    "select state, payload ->> 'consumerGivenName' as name from bookings where reference = $1",
    [reference],
  );
  return rows;
}

test.each(Object.entries(untidy))(
  "a booking whose reference has %s is the one under the clean reference",
  async (_, references) => {
    const [sent = "", clean = ""] = references;
    const name = "consumerTripPartnerExternalReference";
    expect(await post("create", { [name]: sent, consumerGivenName: "Ada" })).toEqual(["untidy-reference"]);
    expect(await readBookings(clean)).toEqual([{ state: "active", name: "Ada" }]);

    expect(await post("update", { [name]: clean, consumerGivenName: "Zoë" })).toEqual([]);
    expect(await readBookings(clean)).toEqual([{ state: "active", name: "Zoë" }]);

    for (const reference of [sent, clean]) {
      const question = await ask(`booking/${secret}?${new URLSearchParams({ reference })}`);
      expect(JSON.parse(question)).toMatchObject({ state: "active", revision: 2 });
      const { stdout } = await runOps(["bookings", "show", "acme", reference], { environment: shared.environment });
      expect(stdout).toContain("active");
      const list = `${JSON.stringify({ reference })}\n`;
      const answer = await ask(`reconcile/${secret}`, {
        ...{ method: "POST", headers: { "Content-Type": "application/x-ndjson" }, body: list },
      });
      expect(JSON.parse(answer.trimEnd().split("\n").at(-1) ?? "")).toMatchObject({ summary: { same: 1, missing: 0 } });
    }
    const wrong = JSON.stringify({ reference: sent, digest: "00".repeat(32) });
    const answer = await ask(`reconcile/${secret}`, {
      ...{ method: "POST", headers: { "Content-Type": "application/x-ndjson" }, body: wrong },
    });
    expect(JSON.parse(answer.split("\n")[0] ?? "")).toMatchObject({ reference: sent, result: "different" });

    expect(await post("delete", { [name]: clean })).toEqual([]);
    expect(await readBookings(clean)).toEqual([{ state: "deleted", name: "Zoë" }]);
  },
);

test("a consumer's reference is cleaned too, and a trip reference that nobody sees counts as missing", async () => {
  const [trip, consumer] = ["consumerTripPartnerExternalReference", "consumerPartnerExternalReference"];
  const codes = await post("create", { [trip]: "\u200b", [consumer]: "C-1\n", consumerGivenName: "Ada" });
  expect(codes).toEqual(["no-trip-reference", "untidy-reference"]);
  expect(await post("delete", { [trip]: "", [consumer]: "C-1" })).toEqual([]);
  expect(await readBookings("C-1")).toEqual([{ state: "deleted", name: "Ada" }]);
});
