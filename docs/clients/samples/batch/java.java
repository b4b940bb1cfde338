import java.util.ArrayList;
import java.util.List;
import java.util.Map;

class Batch {
  public static void main(String[] args) {
    var bookings = new BookingEvents(System.getenv("BOOKING_EVENTS_URL"), System.getenv("BOOKING_EVENTS_SECRET"));

    // The events of many bookings. Any Iterable may read your database while they are sent.
    var events = new ArrayList<Map<String, Object>>();
    for (var reference : List.of("TRIP-1", "TRIP-2")) {
      var payload = Map.of("consumerTripPartnerExternalReference", reference);
      events.add(Map.of("kind", "create", "payload", payload, "idempotencyKey", reference + "/version-1"));
    }
    bookings.batch(events, answer -> System.out.println(answer.get("status") + " " + answer.get("idempotencyKey")));
  }
}
