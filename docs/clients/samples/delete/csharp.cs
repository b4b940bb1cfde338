using System;
using System.Collections.Generic;

var bookings = new BookingEventsClient(
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_URL"), Environment.GetEnvironmentVariable("BOOKING_EVENTS_SECRET"));
var reference = new Dictionary<string, object> { ["consumerTripPartnerExternalReference"] = "TRIP-1" };
var answer = await bookings.DeleteAsync(reference, idempotencyKey: "TRIP-1/version-3");
Console.WriteLine(answer["eventId"]);
