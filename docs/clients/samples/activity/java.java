class Activity {
  public static void main(String[] args) {
    var options = new BookingEvents.Options();
    options.lookupUrl = System.getenv("LOOKUP_URL");
    var bookings = new BookingEvents(System.getenv("BOOKING_EVENTS_URL"), System.getenv("BOOKING_EVENTS_SECRET"), options);
    System.out.println(bookings.activity());
  }
}
