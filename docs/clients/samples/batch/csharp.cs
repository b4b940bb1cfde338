using System;
using System.Collections.Generic;
using System.Linq;

var bookings = new BookingEventsClient(
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_URL"), Environment.GetEnvironmentVariable("BOOKING_EVENTS_SECRET"));
// The events of many bookings. The list may read your database while it is sent.
var events = new[] { "TRIP-1", "TRIP-2" }.Select(reference => new Dictionary<string, object>
{
    ["kind"] = "create",
    ["payload"] = new Dictionary<string, object> { ["consumerTripPartnerExternalReference"] = reference },
    ["idempotencyKey"] = reference + "/version-1",
});
await bookings.BatchAsync(events, answer => Console.WriteLine($"{answer["status"]} {answer["idempotencyKey"]}"));
