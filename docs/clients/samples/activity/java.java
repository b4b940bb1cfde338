import java.util.List;

class Activity {
  public static void main(String[] args) {
    var options = new BookingEvents.Options();
    options.lookupUrl = System.getenv("LOOKUP_URL");
    var bookings = new BookingEvents(System.getenv("BOOKING_EVENTS_URL"), System.getenv("BOOKING_EVENTS_SECRET"), options);
    var activity = bookings.activity();
    for (var part : List.of("violations", "warnings"))
      for (var found : (List<?>) activity.get(part)) System.out.println(found);
  }
}
