<?php
require 'BookingEvents.php';

$bookings = new BookingEvents(getenv('BOOKING_EVENTS_URL'), getenv('BOOKING_EVENTS_SECRET'));

$reference = ['consumerTripPartnerExternalReference' => 'TRIP-1'];
$answer = $bookings->delete($reference, idempotencyKey: 'TRIP-1/version-3');
echo $answer['eventId'], "\n";
