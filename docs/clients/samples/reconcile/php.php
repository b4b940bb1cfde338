<?php
require 'BookingEvents.php';

[$url, $secret, $lookupUrl] = array_map(getenv(...), ['BOOKING_EVENTS_URL', 'BOOKING_EVENTS_SECRET', 'LOOKUP_URL']);
$bookings = new BookingEvents($url, $secret, lookupUrl: $lookupUrl ?: null);

// All bookings that are active at your end, read from your database in pages.
function listBookings(): Generator
{
    $payload = ['consumerTripPartnerExternalReference' => 'TRIP-1', 'consumerGivenName' => 'Ada'];
    yield ['reference' => 'TRIP-1', 'digest' => BookingEvents::digest($payload)];
}

foreach ($bookings->reconcile(listBookings()) as $difference) {
    echo $difference['reference'], ' ', $difference['result'], "\n";
}
