import java.util.List;
import java.util.Map;

class Reconcile {
  public static void main(String[] args) {
    var options = new BookingEvents.Options();
    options.lookupUrl = System.getenv("LOOKUP_URL");
    var bookings = new BookingEvents(System.getenv("BOOKING_EVENTS_URL"), System.getenv("BOOKING_EVENTS_SECRET"), options);
    // All bookings that are active at your end. The list may read your database while it is sent.
    var payload = Map.of("consumerTripPartnerExternalReference", "TRIP-1", "consumerGivenName", "Ada");
    var list = List.of(Map.of("reference", "TRIP-1", "digest", BookingEvents.digest(payload)));
    bookings.reconcile(list, false, difference ->
        System.out.println(difference.get("reference") + " " + difference.get("result")));
  }
}
