using System;
using System.Collections.Generic;

var bookings = new BookingEventsClient(
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_URL"),
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_SECRET"),
    lookupUrl: Environment.GetEnvironmentVariable("LOOKUP_URL"));
var activity = await bookings.ActivityAsync();
foreach (var part in new[] { "violations", "warnings" })
    foreach (Dictionary<string, object> found in (List<object>)activity[part])
        Console.WriteLine($"{found["count"]} {found["field"]} {found["code"]} {found["advice"]}");
