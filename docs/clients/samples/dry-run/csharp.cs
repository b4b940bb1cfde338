using System;
using System.Collections.Generic;

var bookings = new BookingEventsClient(
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_URL"), Environment.GetEnvironmentVariable("BOOKING_EVENTS_SECRET"));
var booking = new Dictionary<string, object>
{
    ["consumerTripPartnerExternalReference"] = "TRIP-1",
    ["consumerPhone"] = "07911 123456",
};
var answer = await bookings.CreateAsync(booking, dryRun: true);
foreach (var warning in BookingEventsClient.Warnings(answer)) Console.WriteLine(warning["message"]);
