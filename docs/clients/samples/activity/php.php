<?php
require 'BookingEvents.php';

[$url, $secret, $lookupUrl] = array_map(getenv(...), ['BOOKING_EVENTS_URL', 'BOOKING_EVENTS_SECRET', 'LOOKUP_URL']);
$bookings = new BookingEvents($url, $secret, lookupUrl: $lookupUrl ?: null);

echo json_encode($bookings->activity(), JSON_PRETTY_PRINT), "\n";
