import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.LocalDate;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

class Adapter {
  public static void main(String[] args) throws Exception {
    var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    for (String line = in.readLine(); line != null; line = in.readLine())
      out.println(hidden("toJson", Object.class, answer(map(hidden("parse", String.class, line)))));
  }

  static Object hidden(String name, Class<?> type, Object argument) throws Exception {
    Method method = BookingEvents.class.getDeclaredMethod(name, type);
    method.setAccessible(true);
    try {
      return method.invoke(null, argument);
    } catch (InvocationTargetException problem) {
      throw (Exception) problem.getCause();
    }
  }

  @SuppressWarnings("unchecked")
  static Map<String, Object> map(Object value) {
    return (Map<String, Object>) value;
  }

  static Map<String, Object> answer(Map<String, Object> call) {
    var shown = new ArrayList<String>();
    var result = new HashMap<String, Object>();
    try {
      var options = new BookingEvents.Options();
      options.lookupUrl = (String) call.get("lookupUrl");
      options.maxAttempts = ((Number) call.get("maxAttempts")).intValue();
      options.firstRetryDelay = seconds(call.get("firstRetryDelayS"));
      options.attemptTimeout = seconds(call.get("attemptTimeoutS"));
      options.totalTimeout = seconds(call.get("totalTimeoutS"));
      var client = new BookingEvents((String) call.get("baseUrl"), (String) call.get("secret"), options);
      shown.add(client.toString());
      result.put("answer", perform(client, call));
    } catch (BookingEvents.Failure failure) {
      result.put("message", failure.getMessage());
      result.put("code", failure.code);
      result.put("retryable", failure.retryable);
      result.put("attempts", failure.attempts);
      result.put("key", failure.idempotencyKey);
      result.put("status", failure.status == 0 ? null : failure.status);
      result.put("requestId", failure.requestId);
      result.put("violations", failure.violations);
      result.put("retryAfterS", failure.retryAfter == null ? null : failure.retryAfter.toSeconds());
      shown.add(trace(failure));
    } catch (IllegalArgumentException error) {
      result.put("invalid", error.getMessage());
      shown.add(trace(error));
    }
    return Map.of("result", result, "shown", shown);
  }

  static Object perform(BookingEvents client, Map<String, Object> call) {
    Object payload = natively(call.get("payload"));
    var items = new ArrayList<Map<String, Object>>();
    String key = (String) call.get("key");
    boolean isDryRun = Boolean.TRUE.equals(call.get("dryRun"));
    switch ((String) call.get("method")) {
      case "digest": return BookingEvents.digest(map(payload));
      case "receipt": return client.receipt((String) payload);
      case "booking": return client.booking((String) payload, "consumer", (String) call.get("fields"));
      case "activity":
        return payload == null ? client.activity() : client.activity(LocalDate.parse((String) payload));
      case "reconcile":
        var end = client.reconcile(maps(payload), Boolean.TRUE.equals(call.get("allowEmpty")), items::add);
        return Map.of("items", items, "end", end);
      case "batch":
        client.batch(maps(payload), items::add);
        return Map.of("items", items);
      case "create": return isDryRun ? client.dryRun("create", map(payload)) : client.create(map(payload), key);
      case "update": return client.update(map(payload), key);
      default: return client.delete(map(payload), key);
    }
  }

  @SuppressWarnings("unchecked")
  static List<Map<String, Object>> maps(Object value) {
    return (List<Map<String, Object>>) value;
  }

  static Object natively(Object value) {
    if (value instanceof List) {
      var items = new ArrayList<Object>();
      for (Object item : (List<?>) value) items.add(natively(item));
      return items;
    }
    if (!(value instanceof Map)) return value;
    Map<String, Object> members = new HashMap<>();
    for (var member : map(value).entrySet()) {
      Object text = member.getValue();
      switch (member.getKey()) {
        case "$object": return Map.of();
        case "$day": return LocalDate.parse((String) text);
        case "$time": return OffsetDateTime.parse((String) text);
        case "$integer": return new BigInteger((String) text);
        case "$float": return Double.valueOf((String) text);
        default: members.put(member.getKey(), natively(text));
      }
    }
    return members;
  }

  static Duration seconds(Object number) {
    return Duration.ofMillis((long) (((Number) number).doubleValue() * 1000));
  }

  static String trace(Throwable error) {
    var text = new StringWriter();
    error.printStackTrace(new PrintWriter(text));
    return text.toString();
  }
}
