import java.util.Map;

class Booking {
  public static void main(String[] args) {
    var options = new BookingEvents.Options();
    options.lookupUrl = System.getenv("LOOKUP_URL");
    var bookings = new BookingEvents(System.getenv("BOOKING_EVENTS_URL"), System.getenv("BOOKING_EVENTS_SECRET"), options);
    Map<String, Object> sent = Map.of(
        "consumerTripPartnerExternalReference", "TRIP-1",
        "consumerGivenName", "Ada",
        "consumerTripArrivalDate", "2027-06-15");
    var booking = bookings.booking("TRIP-1");
    if (booking == null) System.out.println("unknown");
    else System.out.println(booking.get("state") + " " + BookingEvents.digest(sent).equals(booking.get("digest")));
  }
}
