using System;

var bookings = new BookingEventsClient(
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_URL"),
    Environment.GetEnvironmentVariable("BOOKING_EVENTS_SECRET"),
    lookupUrl: Environment.GetEnvironmentVariable("LOOKUP_URL"));
// The eventId of the answer that you kept.
var receipt = await bookings.ReceiptAsync("01a1fafe-d690-7608-9309-bff7f221cbc9");
Console.WriteLine(receipt == null ? "unknown" : receipt["status"]);
