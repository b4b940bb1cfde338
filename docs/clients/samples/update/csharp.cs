using System;
using System.Collections.Generic;

var bookings = new BookingEventsClient(
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_URL"), Environment.GetEnvironmentVariable("BOOKING_EVENTS_SECRET"));
// The whole booking: fields that you omit are removed.
var booking = new Dictionary<string, object>
{
    ["consumerTripPartnerExternalReference"] = "TRIP-1",
    ["consumerGivenName"] = "Ada",
    ["consumerTripArrivalDate"] = new DateTime(2027, 6, 15),
};
var answer = await bookings.UpdateAsync(booking, idempotencyKey: "TRIP-1/version-2");
Console.WriteLine(answer["eventId"]);
