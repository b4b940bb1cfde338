import { type BookingInput, parseJson } from "@booking-events/schema";
import { expect, test } from "vitest";
import { aChange } from "./testing/a-change.ts";
import { testEvent, toEvent } from "./to-event.ts";

test("a thin event says which booking has changed, and how, and nothing that was sent but the reference", () => {
  const change = aChange({ change: "updated", revision: 2 });
  expect(toEvent(change, { payload: "thin", changedFields: ["consumerEmail"] })).toEqual({
    specversion: "1.0",
    id: "7",
    source: "acme",
    type: "booking.updated",
    subject: "TRIP-1",
    time: "2026-11-26T07:00:00.123Z",
    datacontenttype: "application/json",
    data: {
      ...{ bookingId: change.bookingId, referenceKind: "trip", revision: 2, change: "updated" },
      ...{ changedFields: ["consumerEmail"], sequence: 1_795_000_000_000_000, eventId: change.eventId },
    },
  });
});

test("a full event has the booking as it was read and as it was sent, with all digits of its numbers", () => {
  const sent = `{"consumerTripPartnerExternalReference":"TRIP-1","consumerTripIsLocal":"yes","ids":[9007199254740993,1e400]}`;
  const change = aChange({ payload: parseJson(sent) as BookingInput });
  const json = JSON.stringify(toEvent(change, { payload: "full", changedFields: null }));
  expect(json).toContain(`"sent":${sent}`);
  expect(JSON.parse(json).data).toMatchObject({
    payloadState: "as-changed",
    booking: {
      ...{ booking_id: change.bookingId, partner: "acme", reference: "TRIP-1", state: "active" },
      ...{ consumer_trip_is_local: true, consumer_trip_is_local_as_sent: "yes", consumer_email: null },
    },
  });
});

test("a phone number without a calling code is read by the country of the event", () => {
  const change = aChange({ defaultCountry: "GB", payload: { consumerPhone: "020 7183 8750" } as BookingInput });
  expect(toEvent(change, { payload: "full", changedFields: null }).data).toMatchObject({
    booking: { consumer_phone: "+442071838750", consumer_phone_is_assumed: true },
  });
});

test("a deletion has no booking", () => {
  const change = aChange({ change: "deleted", payload: null, payloadState: "deleted" });
  const { data, type } = toEvent(change, { payload: "full", changedFields: null });
  expect(type).toBe("booking.deleted");
  expect(data).toMatchObject({ payloadState: "deleted", booking: null, sent: null });
});

test.each(["erased", "updated"] as const)("the change %s of an erased booking names the booking only", (kind) => {
  const erased = { change: kind, reference: null, payload: null, payloadState: "erased" } as const;
  const change = aChange({ ...erased, revision: 3 });
  const { subject, source, data } = toEvent(change, { payload: "full", changedFields: ["consumerEmail"] });
  expect({ subject, source }).toEqual({ subject: change.bookingId, source: "acme" });
  expect(data).toEqual({ bookingId: change.bookingId, revision: 3, change: kind });
});

test("a test event looks like others, and is about no booking", () => {
  const event = testEvent(new Date("2026-11-26T07:00:00Z"));
  expect(event).toMatchObject({ specversion: "1.0", type: "booking.test", time: "2026-11-26T07:00:00.000Z" });
  expect(event.id).not.toBe(testEvent(new Date()).id);
});
