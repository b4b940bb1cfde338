import java.util.List;
import java.util.Map;

class Batch {
  public static void main(String[] args) {
    var bookings = new BookingEvents(System.getenv("BOOKING_EVENTS_URL"), System.getenv("BOOKING_EVENTS_SECRET"));
    // The events of many bookings. The list may read your database while it is sent.
    var events = List.of("TRIP-1", "TRIP-2").stream().map(reference -> Map.of(
        "kind", "create",
        "payload", Map.of("consumerTripPartnerExternalReference", reference),
        "idempotencyKey", reference + "/version-1"));
    bookings.batch(events::iterator, answer ->
        System.out.println(answer.get("status") + " " + answer.get("idempotencyKey")));
  }
}
