<?php
require 'BookingEvents.php';

[$url, $secret, $lookupUrl] = array_map(getenv(...), ['BOOKING_EVENTS_URL', 'BOOKING_EVENTS_SECRET', 'LOOKUP_URL']);
$bookings = new BookingEvents($url, $secret, lookupUrl: $lookupUrl ?: null);

$sent = [
    'consumerTripPartnerExternalReference' => 'TRIP-1',
    'consumerGivenName' => 'Ada',
    'consumerTripArrivalDate' => '2027-06-15',
];
$booking = $bookings->booking('TRIP-1');
$isCurrent = ($booking['digest'] ?? '') === BookingEvents::digest($sent);
echo $booking['state'] ?? 'unknown', ' ', $isCurrent ? 'true' : 'false', "\n";
