<?php
require 'BookingEvents.php';

$bookings = new BookingEvents(getenv('BOOKING_EVENTS_URL'), getenv('BOOKING_EVENTS_SECRET'));

$booking = ['consumerTripPartnerExternalReference' => 'TRIP-1', 'consumerPhone' => '07911 123456'];
$answer = $bookings->create($booking, dryRun: true);
foreach ($answer['warnings'] ?? [] as $warning) {
    echo implode('.', $warning['propertyPath']), ' ', $warning['message'], "\n";
}
