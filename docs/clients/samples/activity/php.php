<?php
require 'BookingEvents.php';

[$url, $secret, $lookupUrl] = array_map(getenv(...), ['BOOKING_EVENTS_URL', 'BOOKING_EVENTS_SECRET', 'LOOKUP_URL']);
$bookings = new BookingEvents($url, $secret, lookupUrl: $lookupUrl ?: null);

$activity = $bookings->activity();
foreach ([...$activity['violations'], ...$activity['warnings']] as $found) {
    echo "{$found['count']} {$found['field']} {$found['code']} {$found['advice']}\n";
}
