import java.util.Map;

class Delete {
  public static void main(String[] args) {
    var bookings = new BookingEvents(System.getenv("BOOKING_EVENTS_URL"), System.getenv("BOOKING_EVENTS_SECRET"));
    var answer = bookings.delete(Map.of("consumerTripPartnerExternalReference", "TRIP-1"), "TRIP-1/version-3");
    System.out.println(answer.get("eventId"));
  }
}
