import java.time.LocalDate;
import java.util.Map;

class Send {
  public static void main(String[] args) {
    var bookings = new BookingEvents(System.getenv("BOOKING_EVENTS_URL"), System.getenv("BOOKING_EVENTS_SECRET"));
    Map<String, Object> booking = Map.of(
        "consumerTripPartnerExternalReference", "TRIP-1",
        "consumerGivenName", "Ada",
        "consumerTripArrivalDate", LocalDate.of(2027, 6, 14));
    try {
      var answer = bookings.create(booking, "TRIP-1/version-1");
      System.out.println(answer.get("eventId") + " " + BookingEvents.warnings(answer));
    } catch (BookingEvents.Failure failure) {
      if (failure.retryable) System.err.println("Send it again later with the key " + failure.idempotencyKey);
      else System.err.println(failure.code + " " + failure.getMessage() + " " + failure.violations);
    }
  }
}
