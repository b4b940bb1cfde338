<?php
require 'BookingEvents.php';

$bookings = new BookingEvents(getenv('BOOKING_EVENTS_URL'), getenv('BOOKING_EVENTS_SECRET'));

// The events of many bookings, read from your database in pages.
function listEvents(): Generator
{
    foreach (['TRIP-1', 'TRIP-2'] as $reference) {
        $payload = ['consumerTripPartnerExternalReference' => $reference];
        yield ['kind' => 'create', 'payload' => $payload, 'idempotencyKey' => "$reference/version-1"];
    }
}

foreach ($bookings->batch(listEvents()) as $answer) {
    echo $answer['status'], ' ', $answer['idempotencyKey'], "\n";
}
