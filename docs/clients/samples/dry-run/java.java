import java.util.Map;

class DryRun {
  public static void main(String[] args) {
    var bookings = new BookingEvents(System.getenv("BOOKING_EVENTS_URL"), System.getenv("BOOKING_EVENTS_SECRET"));
    Map<String, Object> booking = Map.of("consumerTripPartnerExternalReference", "TRIP-1", "consumerPhone", "07911 123456");
    var answer = bookings.dryRun("create", booking);
    for (var warning : BookingEvents.warnings(answer))
      System.out.println(warning.get("propertyPath") + " " + warning.get("message"));
  }
}
