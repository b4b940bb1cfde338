using System;
using System.Collections.Generic;

var bookings = new BookingEventsClient(
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_URL"), Environment.GetEnvironmentVariable("BOOKING_EVENTS_SECRET"));
var booking = new Dictionary<string, object>
{
    ["consumerTripPartnerExternalReference"] = "TRIP-1",
    ["consumerGivenName"] = "Ada",
    ["consumerTripArrivalDate"] = new DateTime(2027, 6, 14),
};
try
{
    var answer = await bookings.CreateAsync(booking, idempotencyKey: "TRIP-1/version-1");
    Console.WriteLine(answer["eventId"]);
    foreach (var warning in BookingEventsClient.Warnings(answer)) Console.WriteLine(warning["message"]);
}
catch (BookingEventsException error)
{
    if (error.Retryable) Console.Error.WriteLine("Send it again later with the key " + error.IdempotencyKey);
    else Console.Error.WriteLine($"{error.Code} {error.Message} {error.Violations.Count}");
}
