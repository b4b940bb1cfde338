using System;
using System.Collections.Generic;

var bookings = new BookingEventsClient(
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_URL"),
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_SECRET"),
    lookupUrl: Environment.GetEnvironmentVariable("LOOKUP_URL"));
// All bookings that are active at your end. The list may read your database while it is sent.
var payload = new Dictionary<string, object>
{
    ["consumerTripPartnerExternalReference"] = "TRIP-1", ["consumerGivenName"] = "Ada",
};
var list = new[]
{
    new Dictionary<string, object> { ["reference"] = "TRIP-1", ["digest"] = BookingEventsClient.Digest(payload) },
};
await bookings.ReconcileAsync(list, difference => Console.WriteLine($"{difference["reference"]} {difference["result"]}"));
