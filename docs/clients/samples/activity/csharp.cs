using System;

var bookings = new BookingEventsClient(
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_URL"),
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_SECRET"),
    lookupUrl: Environment.GetEnvironmentVariable("LOOKUP_URL"));
foreach (var part in await bookings.ActivityAsync()) Console.WriteLine($"{part.Key}: {part.Value}");
