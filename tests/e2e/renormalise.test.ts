import { sampleEvent } from "@booking-events/harness/sample-event";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { applyEvents } from "@booking-events/worker/apply/apply-events";
import { expect, test } from "vitest";

const { pool, url } = useTestDatabase({ maxConnections: 2 });

function renormalise(...args: string[]) {
  return runOps(["bookings", "renormalise", ...args], { environment: { DATABASE_URL: url } });
}

test("bookings are read again, and it is said how many were and how many differed", async () => {
  const envelopes = [1, 2, 3].map((number) =>
    sampleEvent(number, {
      partner: number === 3 ? "globe" : "acme",
      payload: { consumerTripPartnerExternalReference: `T-${number}`, consumerPhone: "+44 20 7183 8750" },
    }),
  );
  await applyEvents(pool, envelopes, { duplicateWindowMs: 0 });
  await pool.query("update bookings set consumer_phone = null, guest_hashes = '{}' where reference <> 'T-2'");
  expect(await renormalise("--dry-run")).toEqual({
    exitCode: 0,
    stdout: "3 bookings: 2 would be corrected.\n",
    stderr: "",
  });
  expect((await renormalise("--partner", "globe")).stdout).toBe("1 bookings: 1 corrected.\n");
  expect(JSON.parse((await renormalise("--json")).stdout)).toEqual({
    bookings: 3,
    changed: 1,
    busy: 0,
    isDryRun: false,
  });
  expect((await renormalise()).stdout).toBe("3 bookings: 0 corrected.\n");
  const { rows } = await pool.query(
    "select distinct consumer_phone, cardinality(guest_hashes) as hashes from bookings",
  );
  expect(rows).toEqual([{ consumer_phone: "+442071838750", hashes: 1 }]);
});
