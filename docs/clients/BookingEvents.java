import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublisher;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeParseException;
import java.time.temporal.TemporalAccessor;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Sends booking events until they are accepted, refused for good, or out of attempts or time; asks what became of them;
 * compares bookings.
 *
 * <p>Copy this file into your project. It needs Java 11 or newer, and no library.
 *
 * <pre>{@code
 * var bookings = new BookingEvents("https://bookings.example.com", System.getenv("BOOKING_EVENTS_SECRET"));
 * var answer = bookings.create(
 *     Map.of("consumerTripPartnerExternalReference", "TRIP-1", "consumerTripArrivalDate", LocalDate.of(2027, 6, 14)),
 *     "TRIP-1/version-1"); // Each event needs a key of its own.
 * for (var warning : BookingEvents.warnings(answer)) System.err.println(warning);
 * }</pre>
 *
 * <p>A payload may contain texts, numbers, booleans, null, maps, lists, and what java.time has: a LocalDate is sent as
 * 2027-06-14, and a time with the offset that it has. The system properties https.proxyHost and https.proxyPort are
 * honoured. An instance may be used by several threads.
 */
public final class BookingEvents {
  public static final String VERSION = "0.1.0";
  private static final int MAX_ANSWER_BYTES = 16_777_216;
  /** So few that a slow rate limit lets all of them through before the time-out. */
  private static final int EVENTS_PER_REQUEST = 100;
  private static final double LONGEST_RETRY_DELAY_MS = 30_000;
  /** Long, because the service reads a batch as slowly as the rate limit demands. */
  private static final Duration BATCH_TIMEOUT = Duration.ofSeconds(300);

  /** Set what you need, before you create a client. */
  public static final class Options {
    /** The address for questions, if it is another one. */
    public String lookupUrl;
    public Duration attemptTimeout = Duration.ofSeconds(10);
    public Duration totalTimeout = Duration.ofSeconds(60);
    public int maxAttempts = 5;
    public Duration firstRetryDelay = Duration.ofSeconds(1);
  }

  /** What was sent was not accepted, or no answer said that it was. Contains neither the secret nor the payload. */
  @SuppressWarnings("serial")
  public static final class Failure extends RuntimeException {
    /** The reason: a code of the service, or network-error, timeout, interrupted, redirected, unexpected-answer. */
    public final String code;
    /** If true, send the same event again later, with the same idempotency key. */
    public final boolean retryable;
    public final int attempts;
    public final String idempotencyKey;
    /** 0: no answer arrived. */
    public final int status;
    /** Quote it when you ask for support. */
    public final String requestId;
    /** Of an answer with status 422: maps with message, code and propertyPath. */
    public final List<Map<String, Object>> violations;
    /** How long the service asked to wait, or null. */
    public final Duration retryAfter;

    private Failure(Fault fault, int attempts, String idempotencyKey) {
      super(fault.message);
      code = fault.code;
      retryable = fault.retryable;
      this.attempts = attempts;
      this.idempotencyKey = idempotencyKey;
      status = fault.status;
      requestId = fault.requestId;
      violations = fault.violations;
      retryAfter = fault.retryAfter;
    }
  }

  private final HttpClient http =
      HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).connectTimeout(Duration.ofSeconds(10)).build();
  private final String baseUrl;
  private final String lookupUrl;
  private final String secret;
  private final Options options;

  public BookingEvents(String baseUrl, String secret) {
    this(baseUrl, secret, new Options());
  }

  public BookingEvents(String baseUrl, String secret, Options options) {
    this.baseUrl = checkUrl(baseUrl, "baseUrl");
    this.lookupUrl = checkUrl(options.lookupUrl == null ? baseUrl : options.lookupUrl, "lookupUrl");
    if (secret == null || secret.isEmpty() || Pattern.compile("\\s|^\\.\\.?$").matcher(secret).find())
      throw new IllegalArgumentException("secret must be the secret that we gave you, without white space.");
    this.secret = secret;
    this.options = options;
  }

  /** A booking is new. Send the whole booking. Without a key (null), the call gets a random one. */
  public Map<String, Object> create(Map<String, ?> booking, String idempotencyKey) {
    return send("create", booking, idempotencyKey, false);
  }

  /** A booking has changed. Send the whole booking: fields that you omit are removed. */
  public Map<String, Object> update(Map<String, ?> booking, String idempotencyKey) {
    return send("update", booking, idempotencyKey, false);
  }

  /** A booking is gone. Send its reference. */
  public Map<String, Object> delete(Map<String, ?> reference, String idempotencyKey) {
    return send("delete", reference, idempotencyKey, false);
  }

  /** The service checks everything and stores nothing. The kind is create, update or delete. */
  public Map<String, Object> dryRun(String kind, Map<String, ?> payload) {
    return send(kind, payload, null, true);
  }

  /** What the service suspects to be a mistake: maps with message, code and propertyPath. */
  @SuppressWarnings("unchecked")
  public static List<Map<String, Object>> warnings(Map<String, Object> answer) {
    return (List<Map<String, Object>>) answer.getOrDefault("warnings", List.of());
  }

  /**
   * Sends many events, given as maps with kind, payload and idempotencyKey. Passes on a map for each, in their order, when
   * it is decided: idempotencyKey, status, and eventId and warnings, or code, message and violationList.
   *
   * @throws Failure if the rest cannot be sent now
   */
  public void batch(Iterable<? extends Map<String, ?>> events, Consumer<Map<String, Object>> decided) {
    int number = 0;
    for (Iterator<? extends Map<String, ?>> all = events.iterator(); all.hasNext(); ) {
      List<Map<String, Object>> rest = new ArrayList<>();
      while (rest.size() < EVENTS_PER_REQUEST && all.hasNext()) {
        Map<String, Object> event = new LinkedHashMap<>(all.next());
        event.put("idempotencyKey", checkKey((String) event.get("idempotencyKey")));
        rest.add(event);
      }
      Retry retry = new Retry(BATCH_TIMEOUT, null);
      while (!rest.isEmpty()) {
        StringBuilder body = new StringBuilder();
        for (Map<String, Object> event : rest) body.append(toJson(event)).append('\n');
        HttpRequest.Builder request = request(baseUrl, "batch", "").header("Content-Type", "application/x-ndjson");
        request.POST(BodyPublishers.ofString(body.toString()));
        Outcome<String> outcome = attempt(request, retry.timeout(BATCH_TIMEOUT), text -> text, true);
        Fault fault = outcome.fault == null ? faultOfLine(Map.of()) : outcome.fault;
        String[] lines = outcome.fault == null ? outcome.answer.split("\n") : new String[0];
        for (int index = 0; index < lines.length; index++) {
          Map<String, Object> answer = new LinkedHashMap<>(parse(hide(lines[index])));
          int status = answer.get("status") instanceof Number ? ((Number) answer.get("status")).intValue() : 0;
          // A 403 that ends the answer early is about the secret, not about the event.
          boolean isEnded = status == 403 && index == lines.length - 1 && rest.size() > 1;
          if (rest.isEmpty() || isEnded || isRetryable(status)) {
            fault = faultOfLine(answer);
            break;
          }
          answer.put("line", ++number);
          answer.put("idempotencyKey", rest.remove(0).get("idempotencyKey"));
          decided.accept(answer);
          retry = new Retry(BATCH_TIMEOUT, null);
        }
        if (!rest.isEmpty()) retry.await(fault);
      }
    }
  }

  /** Asks what became of an event. Null: you have no such event, or it has left the log. */
  public Map<String, Object> receipt(String eventId) {
    return ask("receipt", "/" + encode(eventId), "eventId", "no-such-event");
  }

  /** Asks how a booking stands, by its trip reference. Null: the service has no such booking. */
  public Map<String, Object> booking(String reference) {
    return booking(reference, "trip");
  }

  /** The kind of the reference is trip or consumer. */
  public Map<String, Object> booking(String reference, String referenceKind) {
    return booking(reference, referenceKind, "");
  }

  /** With fields, as "consumerPhone,agentEmail" or "all", the answer has what the service reads of them, in readings. */
  public Map<String, Object> booking(String reference, String referenceKind, String fields) {
    String query = "?reference=" + encode(reference) + "&referenceKind=" + encode(referenceKind);
    return ask("booking", fields.isEmpty() ? query : query + "&fields=" + encode(fields), "state", "no-such-booking");
  }

  /** Asks what the service received from you in the last 48 hours, and what it refused. */
  public Map<String, Object> activity() {
    return ask("activity", "", "", "");
  }

  /** Asks the same about one of the last seven days, in UTC. */
  public Map<String, Object> activity(LocalDate day) {
    return ask("activity", "?day=" + day, "", "");
  }

  /**
   * Compares all bookings that are active at your end, given as maps with reference and digest, with the service's. Passes
   * on each difference, and returns the counts. The list is sent while it is read. Nothing is retried.
   *
   * @param allowEmpty whether an empty list is meant, which says that you have no booking any more
   */
  @SuppressWarnings("unchecked")
  public Map<String, Object> reconcile(
      Iterable<? extends Map<String, ?>> bookings, boolean allowEmpty, Consumer<Map<String, Object>> difference) {
    Lines lines = new Lines(bookings.iterator());
    HttpRequest.Builder request = request(lookupUrl, "reconcile", allowEmpty ? "?allowEmpty=true" : "");
    request.header("Content-Type", "application/x-ndjson").POST(BodyPublishers.ofInputStream(() -> lines));
    Fault fault = new Fault("network-error", "The answer is not complete.", true);
    try {
      HttpResponse<InputStream> response = get(http.sendAsync(request.build(), BodyHandlers.ofInputStream()), Duration.ofMinutes(10));
      // A connection that hangs must not hang the program.
      CompletableFuture.delayedExecutor(5, TimeUnit.MINUTES).execute(() -> close(response.body()));
      try (InputStream body = response.body()) {
        if (response.statusCode() != 200) {
          fault = this.<Object>judge(response, body.readNBytes(MAX_ANSWER_BYTES), text -> null).fault;
        } else {
          for (String line = readLine(body); line != null; line = readLine(body)) {
            Map<String, Object> value = parse(line);
            if (value.containsKey("summary")) return (Map<String, Object>) value.get("summary");
            if (!value.containsKey("result")) break;
            difference.accept(value);
          }
        }
      }
    } catch (Exception problem) {
      if (lines.problem != null) throw lines.problem;
      if (problem instanceof RuntimeException) throw (RuntimeException) problem;
      fault = noAnswer(problem, "The answer is not complete.");
    }
    throw new Failure(fault, 1, null);
  }

  /** The digest of a booking's content, as booking and reconcile use it: of the payload of the last create or update. */
  public static String digest(Map<String, ?> payload) {
    // The service stores U+FFFD in place of U+0000 and of half a surrogate pair. The rest have other escapes.
    Matcher escapes = Pattern.compile("\\\\(?:u0000|ud[89a-f]..|.)").matcher(toJson(payload));
    String stored = escapes.replaceAll(found -> found.group().length() == 2 ? Matcher.quoteReplacement(found.group()) : "\ufffd");
    try {
      StringBuilder hex = new StringBuilder();
      for (byte each : MessageDigest.getInstance("SHA-256").digest(stored.getBytes(StandardCharsets.UTF_8)))
        hex.append(String.format("%02x", each));
      return hex.toString();
    } catch (NoSuchAlgorithmException problem) {
      throw new IllegalStateException(problem);
    }
  }

  private Map<String, Object> send(String kind, Map<String, ?> payload, String idempotencyKey, boolean dryRun) {
    String key = checkKey(idempotencyKey);
    HttpRequest.Builder request = request(baseUrl, kind, "").header("Content-Type", "application/json");
    request.header("Idempotency-Key", key);
    if (dryRun) request.header("X-Dry-Run", "true");
    // Every attempt must send the same bytes and key: then a repetition counts once.
    request.POST(BodyPublishers.ofString(toJson(payload)));
    return call(request, key, text -> {
      Map<String, Object> body = parse(text);
      boolean isProof = dryRun ? Boolean.TRUE.equals(body.get("dryRun")) : body.get("eventId") instanceof String;
      return Boolean.TRUE.equals(body.get("success")) && isProof ? body : null;
    });
  }

  private Map<String, Object> ask(String question, String more, String member, String codeOfNothing) {
    try {
      return call(request(lookupUrl, question, more), null, text -> {
        Map<String, Object> body = parse(text);
        return !body.isEmpty() && (member.isEmpty() || body.containsKey(member)) ? body : null;
      });
    } catch (Failure failure) {
      if (failure.code.equals(codeOfNothing)) return null;
      throw failure;
    }
  }

  private <A> A call(HttpRequest.Builder request, String key, Function<String, A> accept) {
    for (Retry retry = new Retry(options.totalTimeout, key); ; ) {
      Outcome<A> outcome = attempt(request, retry.timeout(options.attemptTimeout), accept, key != null);
      if (outcome.fault == null) return outcome.answer;
      retry.await(outcome.fault);
    }
  }

  /** Redirects are not followed: they would pass on the secret. */
  private HttpRequest.Builder request(String base, String kind, String more) {
    return HttpRequest.newBuilder(URI.create(base + "/booking-event/" + kind + "/" + encode(secret) + more));
  }

  private <A> Outcome<A> attempt(HttpRequest.Builder request, Duration timeout, Function<String, A> accept, boolean isEvent) {
    try {
      return get(http.sendAsync(request.build(), BodyHandlers.ofInputStream()).thenApplyAsync(response -> {
        try (InputStream body = response.body()) {
          return judge(response, body.readNBytes(MAX_ANSWER_BYTES), accept);
        } catch (IOException problem) {
          throw new CompletionException(problem);
        }
      }), timeout);
    } catch (IOException | TimeoutException | InterruptedException problem) {
      return new Outcome<>(null, noAnswer(problem, isEvent ? "The event may have been accepted." : ""));
    }
  }

  private static <T> T get(CompletableFuture<T> future, Duration timeout) throws IOException, TimeoutException, InterruptedException {
    try {
      return future.get(timeout.toMillis(), TimeUnit.MILLISECONDS);
    } catch (ExecutionException problem) {
      if (problem.getCause() instanceof RuntimeException) throw (RuntimeException) problem.getCause();
      throw new IOException(problem.getCause());
    } finally {
      future.cancel(true);
    }
  }

  @SuppressWarnings("unchecked")
  private <A> Outcome<A> judge(HttpResponse<?> response, byte[] bytes, Function<String, A> accept) {
    int status = response.statusCode();
    String text = new String(bytes, StandardCharsets.UTF_8);
    A answer = status == 200 ? accept.apply(text) : null;
    if (answer != null) return new Outcome<>(answer, null);
    Map<String, Object> body = parse(hide(text));
    // A 200 without our body may come from a proxy, and says nothing about the event.
    boolean retryable = status == 200 || isRetryable(status);
    Fault fault;
    if (status >= 300 && status < 400) {
      fault = new Fault("redirected", "The server redirects to another address. Correct baseUrl.", false);
    } else if (status < 400 || !(body.get("code") instanceof String) || !(body.get("message") instanceof String)) {
      String message = "An answer with status " + status + " arrived that is not the service's. Check baseUrl and proxies.";
      fault = new Fault("unexpected-answer", message, retryable);
    } else {
      fault = new Fault((String) body.get("code"), (String) body.get("message"), retryable);
      Object violations = body.get("violationList");
      if (violations instanceof List) fault.violations = (List<Map<String, Object>>) violations;
    }
    fault.status = status;
    fault.requestId = hide(response.headers().firstValue("X-Request-Id").orElse(null));
    String retryAfter = response.headers().firstValue("Retry-After").orElse(null);
    fault.retryAfter = parseRetryAfter(retryAfter, response.headers().firstValue("Date").orElse(null));
    return new Outcome<>(null, fault);
  }

  /** Of the line at which the answer to a batch ends: it and those after it are to be sent again. */
  private static Fault faultOfLine(Map<String, Object> answer) {
    String code = String.valueOf(answer.getOrDefault("code", "queue-unavailable"));
    Fault fault = new Fault(code, String.valueOf(answer.getOrDefault("message", "The rest cannot be stored now.")), true);
    if (answer.get("status") instanceof Number) fault.status = ((Number) answer.get("status")).intValue();
    if (answer.get("retryAfter") instanceof Number) fault.retryAfter = Duration.ofSeconds(((Number) answer.get("retryAfter")).longValue());
    return fault;
  }

  private static Fault noAnswer(Throwable problem, String more) {
    boolean isTimeout = problem instanceof TimeoutException;
    if (problem instanceof InterruptedException) Thread.currentThread().interrupt();
    String code = isTimeout ? "timeout" : problem instanceof InterruptedException ? "interrupted" : "network-error";
    Throwable cause = problem.getCause() == null ? problem : problem.getCause();
    // Only the type: a message could contain the path, and thus the secret.
    return new Fault(code, ("No answer arrived (" + cause.getClass().getSimpleName() + "). " + more).trim(), true);
  }

  private static boolean isRetryable(int status) {
    return status != 200 && (status >= 500 || status < 400 || status == 408 || status == 429);
  }

  /** A proxy may repeat the URL. A placeholder in a test, such as "secret", is also part of ordinary words. */
  private String hide(String text) {
    if (text == null || secret.length() < 16) return text;
    return text.replace(secret, "[secret]").replace(encode(secret), "[secret]");
  }

  private static String checkUrl(String text, String name) {
    URI url;
    try {
      url = URI.create(text == null ? "" : text);
    } catch (IllegalArgumentException problem) {
      url = URI.create("");
    }
    boolean isLocal = url.getHost() != null && url.getHost().matches("localhost|127\\.0\\.0\\.1|\\[::1]");
    if (url.getHost() == null || !("https".equals(url.getScheme()) || ("http".equals(url.getScheme()) && isLocal)))
      throw new IllegalArgumentException(name + " must be an https URL, such as https://bookings.example.com.");
    boolean hasMore = url.getUserInfo() != null || url.getQuery() != null || url.getFragment() != null;
    if (hasMore || url.getPath().contains("/booking-event"))
      throw new IllegalArgumentException(name + " must end before /booking-event.");
    return text.replaceAll("/+$", "");
  }

  private static String checkKey(String given) {
    String key = given == null ? UUID.randomUUID().toString() : given;
    // HTTP leaves out spaces around a header's value, and the service quotes.
    if (!key.matches("(?!\".*\"$)[!-~](?:[ -~]{0,253}[!-~])?"))
      throw new IllegalArgumentException(
          "idempotencyKey must have 1 to 255 visible ASCII characters, with spaces only inside, and no quotes around.");
    return key;
  }

  private static String encode(String text) {
    return URLEncoder.encode(text, StandardCharsets.UTF_8).replace("+", "%20");
  }

  /** Seconds, or a date, which is compared with the server's clock, because ours may be wrong. */
  private static Duration parseRetryAfter(String header, String date) {
    if (header == null) return null;
    if (header.matches("[0-9]{1,9}")) return Duration.ofSeconds(Long.parseLong(header));
    try {
      Instant until = ZonedDateTime.parse(header, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant();
      Instant now = date == null ? Instant.now() : ZonedDateTime.parse(date, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant();
      return until.isAfter(now) ? Duration.between(now, until) : Duration.ZERO;
    } catch (DateTimeParseException problem) {
      return null;
    }
  }

  private static void close(InputStream stream) {
    try {
      stream.close();
    } catch (IOException ignored) {
      // Nobody reads it any more.
    }
  }

  private static String readLine(InputStream stream) throws IOException {
    ByteArrayOutputStream line = new ByteArrayOutputStream();
    for (int each = stream.read(); each != -1 && line.size() < 65_536; each = stream.read()) {
      if (each == '\n') return line.toString(StandardCharsets.UTF_8);
      line.write(each);
    }
    return null;
  }

  private static final class Outcome<A> {
    final A answer;
    final Fault fault;

    Outcome(A answer, Fault fault) {
      this.answer = answer;
      this.fault = fault;
    }
  }

  private static final class Fault {
    final String code;
    final String message;
    final boolean retryable;
    int status;
    String requestId;
    List<Map<String, Object>> violations = List.of();
    Duration retryAfter;

    Fault(String code, String message, boolean retryable) {
      this.code = code;
      this.message = message;
      this.retryable = retryable;
    }
  }

  private final class Retry {
    private final long deadline;
    private final String key;
    private int attempts;

    Retry(Duration totalTimeout, String key) {
      deadline = System.nanoTime() + totalTimeout.toNanos();
      this.key = key;
    }

    Duration timeout(Duration longest) {
      attempts += 1;
      return Duration.ofNanos(Math.max(1_000_000, Math.min(longest.toNanos(), deadline - System.nanoTime())));
    }

    /** The random part spreads the retries of many senders. The wait is never shorter than Retry-After. */
    void await(Fault fault) {
      double delayMs = Math.min(options.firstRetryDelay.toMillis() * Math.pow(2, attempts - 1), LONGEST_RETRY_DELAY_MS);
      double random = ThreadLocalRandom.current().nextDouble();
      delayMs = fault.retryAfter == null ? delayMs * (0.5 + random / 2) : fault.retryAfter.toMillis() + delayMs * random;
      boolean isLast = attempts >= options.maxAttempts || System.nanoTime() + delayMs * 1e6 >= deadline;
      if (isLast || !fault.retryable || fault.code.equals("interrupted")) throw new Failure(fault, attempts, key);
      try {
        Thread.sleep((long) delayMs);
      } catch (InterruptedException problem) {
        Thread.currentThread().interrupt();
        throw new Failure(fault, attempts, key);
      }
    }
  }

  /** A list as NDJSON, made while it is read. */
  private static final class Lines extends InputStream {
    private final Iterator<? extends Map<String, ?>> items;
    private byte[] line = {};
    private int at;
    RuntimeException problem;

    Lines(Iterator<? extends Map<String, ?>> items) {
      this.items = items;
    }

    @Override
    public int read() throws IOException {
      byte[] one = new byte[1];
      return read(one, 0, 1) == -1 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
      int count = 0;
      try {
        while (count < length && (at < line.length || items.hasNext())) {
          if (at == line.length) {
            line = (toJson(items.next()) + "\n").getBytes(StandardCharsets.UTF_8);
            at = 0;
          }
          int part = Math.min(length - count, line.length - at);
          System.arraycopy(line, at, into, offset + count, part);
          at += part;
          count += part;
        }
      } catch (RuntimeException thrown) {
        problem = thrown;
        throw new IOException(thrown);
      }
      return count == 0 ? -1 : count;
    }
  }

  /** Canonical JSON (RFC 8785), with all digits: what is sent, and what the digest is of. */
  private static String toJson(Object value) {
    if (value == null || value instanceof Boolean) return String.valueOf(value);
    if (value instanceof CharSequence || value instanceof TemporalAccessor) return quote(value.toString());
    if (value instanceof Number && value.toString().matches("[-+.0-9eE]+")) return canonicalNumber(value.toString());
    StringBuilder json = new StringBuilder();
    if (value instanceof Iterable) {
      for (Object item : (Iterable<?>) value) json.append(json.length() == 0 ? "" : ",").append(toJson(item));
      return "[" + json + "]";
    }
    if (!(value instanceof Map))
      throw new IllegalArgumentException("A payload cannot contain " + value.getClass().getName() + ", nor infinity.");
    // By UTF-16 code units, as Java compares texts.
    Map<String, String> members = new TreeMap<>();
    ((Map<?, ?>) value).forEach((name, member) -> {
      String text = (String) name;
      members.put(text.replaceAll("[\\x00\\x{d800}-\\x{dfff}]", "\ufffd"), quote(text) + ":" + toJson(member));
    });
    return "{" + String.join(",", members.values()) + "}";
  }

  private static String quote(String text) {
    StringBuilder json = new StringBuilder("\"");
    text.codePoints().forEach(each -> {
      int place = "\b\t\n\f\r\"\\".indexOf(each);
      if (place >= 0) json.append('\\').append("btnfr\"\\".charAt(place));
      else if (each < 0x20 || (each >= 0xd800 && each <= 0xdfff)) json.append(String.format("\\u%04x", each));
      else json.appendCodePoint(each);
    });
    return json.append('"').toString();
  }

  private static final Pattern NUMBER = Pattern.compile("(-?)(\\d+)(?:\\.(\\d+))?(?:[eE]([-+]?\\d+))?");

  private static String canonicalNumber(String written) {
    Matcher found = NUMBER.matcher(written);
    if (!found.matches()) throw new IllegalArgumentException("A payload cannot contain a number like this.");
    String sign = found.group(1);
    String fraction = found.group(3) == null ? "" : found.group(3);
    String digits = (found.group(2) + fraction).replaceFirst("^0+", "");
    int point = digits.length() - fraction.length() + (found.group(4) == null ? 0 : Integer.parseInt(found.group(4)));
    digits = digits.replaceFirst("0+$", "");
    if (digits.isEmpty()) return "0";
    if (point > 0 && point <= 21) {
      if (digits.length() <= point) return sign + digits + "0".repeat(point - digits.length());
      return sign + digits.substring(0, point) + "." + digits.substring(point);
    }
    if (point > -6 && point <= 0) return sign + "0." + "0".repeat(-point) + digits;
    String rest = digits.length() == 1 ? "" : "." + digits.substring(1);
    return sign + digits.charAt(0) + rest + String.format("e%+d", point - 1);
  }

  /** Returns an empty map for what is no JSON object. */
  @SuppressWarnings("unchecked")
  private static Map<String, Object> parse(String json) {
    try {
      Object value = new Parser(json).parseWhole();
      return value instanceof Map ? (Map<String, Object>) value : Map.of();
    } catch (RuntimeException problem) {
      return Map.of();
    }
  }

  private static final class Parser {
    private static final Pattern TOKEN =
        Pattern.compile("\\s*([\\[\\]{},:]|\"[^\"\\\\]*+(?:\\\\.[^\"\\\\]*+)*+\"|-?\\d[-+.0-9eE]*|true|false|null)\\s*");
    private final Matcher tokens;

    Parser(String json) {
      tokens = TOKEN.matcher(json);
    }

    Object parseWhole() {
      Object value = parse(next());
      if (tokens.regionStart() != tokens.regionEnd()) throw new IllegalArgumentException();
      return value;
    }

    private String next() {
      if (!tokens.lookingAt()) throw new IllegalArgumentException();
      String token = tokens.group(1);
      int end = tokens.end();
      tokens.region(end, tokens.regionEnd());
      return token;
    }

    private Object parse(String token) {
      switch (token.charAt(0)) {
        case '{':
          Map<String, Object> map = new LinkedHashMap<>();
          for (String name = next(); !name.equals("}"); name = next()) {
            if (name.equals(",")) name = next();
            if (!next().equals(":")) throw new IllegalArgumentException();
            map.put(unquote(name), parse(next()));
          }
          return map;
        case '[':
          List<Object> list = new ArrayList<>();
          for (String item = next(); !item.equals("]"); item = next()) list.add(parse(item.equals(",") ? next() : item));
          return list;
        case '"':
          return unquote(token);
        case 't':
        case 'f':
          return token.equals("true");
        case 'n':
          return null;
        default:
          if (token.matches("-?\\d{1,18}")) return Long.valueOf(token);
          return Double.valueOf(token);
      }
    }

    private static String unquote(String token) {
      return Pattern.compile("\\\\(?:u([0-9a-fA-F]{4})|(.))").matcher(token.substring(1, token.length() - 1)).replaceAll(found -> {
        if (found.group(1) != null)
          return Matcher.quoteReplacement(String.valueOf((char) Integer.parseInt(found.group(1), 16)));
        int place = "bfnrt".indexOf(found.group(2));
        return Matcher.quoteReplacement(place < 0 ? found.group(2) : "\b\f\n\r\t".substring(place, place + 1));
      });
    }
  }
}
