<?php
require 'BookingEvents.php';

$bookings = new BookingEvents(getenv('BOOKING_EVENTS_URL'), getenv('BOOKING_EVENTS_SECRET'));

// The whole booking: fields that you omit are removed.
$booking = [
    'consumerTripPartnerExternalReference' => 'TRIP-1',
    'consumerGivenName' => 'Ada',
    'consumerTripArrivalDate' => new DateTimeImmutable('2027-06-15'),
];
$answer = $bookings->update($booking, idempotencyKey: 'TRIP-1/version-2');
echo $answer['eventId'], "\n";
