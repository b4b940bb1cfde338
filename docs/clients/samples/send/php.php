<?php
require 'BookingEvents.php';

$bookings = new BookingEvents(getenv('BOOKING_EVENTS_URL'), getenv('BOOKING_EVENTS_SECRET'));

$booking = [
    'consumerTripPartnerExternalReference' => 'TRIP-1',
    'consumerGivenName' => 'Ada',
    'consumerTripArrivalDate' => new DateTimeImmutable('2027-06-14'),
];
try {
    $answer = $bookings->create($booking, idempotencyKey: 'TRIP-1/version-1');
    echo $answer['eventId'], ' ', json_encode($answer['warnings'] ?? []), "\n";
} catch (BookingEventsError $error) {
    echo $error->retryable
        ? "Send it again later with the key {$error->idempotencyKey}\n"
        : "{$error->reason} {$error->getMessage()} " . json_encode($error->violations) . "\n";
}
