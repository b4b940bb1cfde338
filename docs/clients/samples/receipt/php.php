<?php
require 'BookingEvents.php';

[$url, $secret, $lookupUrl] = array_map(getenv(...), ['BOOKING_EVENTS_URL', 'BOOKING_EVENTS_SECRET', 'LOOKUP_URL']);
$bookings = new BookingEvents($url, $secret, lookupUrl: $lookupUrl ?: null);

// The eventId of the answer that you kept.
$receipt = $bookings->receipt('01a1fafe-d690-7608-9309-bff7f221cbc9');
echo $receipt['status'] ?? 'unknown', "\n";
