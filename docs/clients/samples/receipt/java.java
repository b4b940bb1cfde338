class Receipt {
  public static void main(String[] args) {
    var options = new BookingEvents.Options();
    options.lookupUrl = System.getenv("LOOKUP_URL");
    var bookings = new BookingEvents(System.getenv("BOOKING_EVENTS_URL"), System.getenv("BOOKING_EVENTS_SECRET"), options);
    // The eventId of the answer that you kept.
    var receipt = bookings.receipt("01a1fafe-d690-7608-9309-bff7f221cbc9");
    System.out.println(receipt == null ? "unknown" : receipt.get("status"));
  }
}
