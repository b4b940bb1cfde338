using System;
using System.Collections.Generic;

var bookings = new BookingEventsClient(
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_URL"),
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_SECRET"),
    lookupUrl: Environment.GetEnvironmentVariable("LOOKUP_URL"));
var sent = new Dictionary<string, object>
{
    ["consumerTripPartnerExternalReference"] = "TRIP-1",
    ["consumerGivenName"] = "Ada",
    ["consumerTripArrivalDate"] = "2027-06-15",
};
var booking = await bookings.BookingAsync("TRIP-1");
if (booking == null) Console.WriteLine("unknown");
else if (!booking.ContainsKey("digest")) Console.WriteLine(booking["state"]);
else Console.WriteLine($"active {BookingEventsClient.Digest(sent).Equals(booking["digest"])}");
