import java.time.LocalDate;
import java.util.Map;

class Update {
  public static void main(String[] args) {
    var bookings = new BookingEvents(System.getenv("BOOKING_EVENTS_URL"), System.getenv("BOOKING_EVENTS_SECRET"));
    // The whole booking: fields that you omit are removed.
    Map<String, Object> booking = Map.of(
        "consumerTripPartnerExternalReference", "TRIP-1",
        "consumerGivenName", "Ada",
        "consumerTripArrivalDate", LocalDate.of(2027, 6, 15));
    var answer = bookings.update(booking, "TRIP-1/version-2");
    System.out.println(answer.get("eventId"));
  }
}
