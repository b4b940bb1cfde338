using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Http.Headers;
using System.Numerics;
using System.Security.Cryptography;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading;
using System.Threading.Tasks;

/// <summary>What was sent was not accepted, or no answer said that it was. Contains neither the secret nor the payload.</summary>
public sealed class BookingEventsException : Exception
{
    /// <summary>The reason: a code of the service, or network-error, timeout, redirected, unexpected-answer.</summary>
    public string Code { get; internal set; }
    /// <summary>If true, send the same event again later, with the same idempotency key.</summary>
    public bool Retryable { get; internal set; }
    public int Attempts { get; internal set; }
    public string IdempotencyKey { get; internal set; }
    /// <summary>0: no answer arrived.</summary>
    public int Status { get; internal set; }
    /// <summary>Quote it when you ask for support.</summary>
    public string RequestId { get; internal set; }
    /// <summary>Of an answer with status 422: dictionaries with message, code and propertyPath.</summary>
    public IList<Dictionary<string, object>> Violations { get; internal set; } = new List<Dictionary<string, object>>();
    /// <summary>How long the service asked to wait.</summary>
    public TimeSpan? RetryAfter { get; internal set; }

    internal BookingEventsException(string code, string message, bool retryable) : base(message)
    {
        Code = code;
        Retryable = retryable;
    }
}

/// <summary>
/// Sends booking events until they are accepted, refused for good, or out of attempts or time; asks what became of them;
/// compares bookings. Copy this file into your project. It needs .NET 6, .NET Framework 4.7 or Mono, and no package. In the
/// last two, refer to the assemblies System.Net.Http and System.Numerics.
/// <code>
/// var bookings = new BookingEventsClient("https://bookings.example.com", secret);
/// var answer = await bookings.CreateAsync(
///     new Dictionary&lt;string, object&gt; { ["consumerTripPartnerExternalReference"] = "TRIP-1" },
///     "TRIP-1/version-1"); // Each event needs a key of its own.
/// foreach (var warning in BookingEventsClient.Warnings(answer)) Console.Error.WriteLine(warning["message"]);
/// </code>
/// A payload may contain texts, numbers, booleans, null, dictionaries, lists and dates. A DateOnly, or a DateTime that is a
/// midnight, is sent as 2027-06-14, and a time with the offset that it has. In answers, whole numbers are long, lists are
/// List&lt;object&gt;, and objects are Dictionary&lt;string, object&gt;. HttpClient.DefaultProxy is honoured. Create one
/// client for each secret; several threads may use it.
/// </summary>
public sealed class BookingEventsClient
{
    public const string Version = "0.1.0";
    private const int MaxAnswerBytes = 16777216;
    /// <summary>So few that a slow rate limit lets all of them through before the time-out.</summary>
    private const int EventsPerRequest = 100;
    private const double LongestRetryDelayMs = 30000;
    /// <summary>Long, because the service reads a batch as slowly as the rate limit demands.</summary>
    private static readonly TimeSpan BatchTimeout = TimeSpan.FromSeconds(300);
    private static readonly Random Random = new Random();

    private readonly HttpClient http;
    private readonly string baseUrl;
    private readonly string lookupUrl;
    private readonly string secret;

    /// <summary>The longest time for one attempt, including its whole answer.</summary>
    public TimeSpan AttemptTimeout { get; set; } = TimeSpan.FromSeconds(10);
    /// <summary>The longest time for a call, with all attempts and the waits between them.</summary>
    public TimeSpan TotalTimeout { get; set; } = TimeSpan.FromSeconds(60);
    public int MaxAttempts { get; set; } = 5;
    public TimeSpan FirstRetryDelay { get; set; } = TimeSpan.FromSeconds(1);

    /// <param name="lookupUrl">The address for questions, if it is another one.</param>
    public BookingEventsClient(string baseUrl, string secret, string lookupUrl = null)
    {
        this.baseUrl = CheckUrl(baseUrl, "baseUrl");
        this.lookupUrl = CheckUrl(lookupUrl ?? baseUrl, "lookupUrl");
        if (string.IsNullOrEmpty(secret) || Regex.IsMatch(secret, @"\s|^\.\.?$"))
            throw new ArgumentException("secret must be the secret that we gave you, without white space.");
        this.secret = secret;
        // Redirects are not followed: they would pass on the secret.
        http = new HttpClient(new HttpClientHandler { AllowAutoRedirect = false }) { Timeout = Timeout.InfiniteTimeSpan };
    }

    /// <summary>A booking is new. Send the whole booking. Without a key, the call gets a random one.</summary>
    public Task<Dictionary<string, object>> CreateAsync(IDictionary booking, string idempotencyKey = null, bool dryRun = false)
        => SendAsync("create", booking, idempotencyKey, dryRun);

    /// <summary>A booking has changed. Send the whole booking: fields that you omit are removed.</summary>
    public Task<Dictionary<string, object>> UpdateAsync(IDictionary booking, string idempotencyKey = null, bool dryRun = false)
        => SendAsync("update", booking, idempotencyKey, dryRun);

    /// <summary>A booking is gone. Send its reference.</summary>
    public Task<Dictionary<string, object>> DeleteAsync(IDictionary reference, string idempotencyKey = null, bool dryRun = false)
        => SendAsync("delete", reference, idempotencyKey, dryRun);

    /// <summary>What the service suspects to be a mistake: dictionaries with message, code and propertyPath.</summary>
    public static IList<Dictionary<string, object>> Warnings(Dictionary<string, object> answer) => ListOf(answer, "warnings");

    /// <summary>
    /// Sends many events, given as dictionaries with kind, payload and idempotencyKey. Passes on a dictionary for each, in
    /// their order, when it is decided: idempotencyKey, status, and eventId and warnings, or code, message and violationList.
    /// Throws if the rest cannot be sent now.
    /// </summary>
    public async Task BatchAsync(IEnumerable<IDictionary> events, Action<Dictionary<string, object>> decided)
    {
        var number = 0;
        var rest = new List<Dictionary<string, object>>();
        using (var all = events.GetEnumerator())
        {
            for (var hasMore = all.MoveNext(); hasMore || rest.Count > 0;)
            {
                for (; hasMore && rest.Count < EventsPerRequest; hasMore = all.MoveNext())
                {
                    var copy = all.Current.Keys.Cast<string>().ToDictionary(name => name, name => all.Current[name]);
                    copy["idempotencyKey"] = CheckKey((string)Member(copy, "idempotencyKey"));
                    rest.Add(copy);
                }
                for (var retry = new Retry(this, BatchTimeout, null); rest.Count > 0;)
                {
                    var body = string.Concat(rest.Select(each => ToJson(each) + "\n"));
                    var post = Post(Url(baseUrl, "batch"), body, "application/x-ndjson");
                    var outcome = await AttemptAsync(post, retry.Timeout(BatchTimeout), text => text, true).ConfigureAwait(false);
                    var stopped = FaultOfLine(new Dictionary<string, object>());
                    var lines = (outcome.Answer ?? "").Split(new[] { '\n' }, StringSplitOptions.RemoveEmptyEntries);
                    for (var index = 0; index < lines.Length; index++)
                    {
                        var answer = Parse(Hide(lines[index]));
                        var status = Convert.ToInt32(Member(answer, "status"));
                        // A 403 that ends the answer early is about the secret, not about the event.
                        var isEnded = status == 403 && index == lines.Length - 1 && rest.Count > 1;
                        if (rest.Count == 0 || isEnded || IsRetryable(status))
                        {
                            stopped = FaultOfLine(answer);
                            break;
                        }
                        answer["line"] = ++number;
                        answer["idempotencyKey"] = rest[0]["idempotencyKey"];
                        rest.RemoveAt(0);
                        decided(answer);
                        retry = new Retry(this, BatchTimeout, null);
                    }
                    if (rest.Count > 0) await retry.WaitAsync(outcome.Fault ?? stopped).ConfigureAwait(false);
                }
            }
        }
    }

    /// <summary>Asks what became of an event. Null: you have no such event, or it has left the log.</summary>
    public Task<Dictionary<string, object>> ReceiptAsync(string eventId)
        => AskAsync(Url(lookupUrl, "receipt", "/" + Uri.EscapeDataString(eventId)), "eventId", "no-such-event");

    /// <summary>Asks how a booking stands. Null: the service has no such booking.</summary>
    /// <param name="fields">Such as "consumerPhone,agentEmail", or "all": the answer has what the service reads of them, in
    /// readings.</param>
    public Task<Dictionary<string, object>> BookingAsync(string reference, string referenceKind = "trip", string fields = null)
    {
        var query = "?reference=" + Uri.EscapeDataString(reference) + "&referenceKind=" + Uri.EscapeDataString(referenceKind);
        if (fields != null) query += "&fields=" + Uri.EscapeDataString(fields);
        return AskAsync(Url(lookupUrl, "booking", query), "state", "no-such-booking");
    }

    /// <summary>Asks what the service received from you in the last 48 hours, or on a day in UTC, and what it refused.</summary>
    public Task<Dictionary<string, object>> ActivityAsync(DateTime? day = null)
    {
        var query = day == null ? "" : "?day=" + day.Value.ToString("yyyy-MM-dd", CultureInfo.InvariantCulture);
        return AskAsync(Url(lookupUrl, "activity", query), null, null);
    }

    /// <summary>
    /// Compares all bookings that are active at your end, given as dictionaries with reference and digest, with the service's.
    /// Passes on each difference, and returns the counts. The list is sent while it is read. Nothing is retried.
    /// </summary>
    /// <param name="allowEmpty">Whether an empty list is meant, which says that you have no booking any more.</param>
    public async Task<Dictionary<string, object>> ReconcileAsync(
        IEnumerable<IDictionary> bookings, Action<Dictionary<string, object>> difference, bool allowEmpty = false)
    {
        var list = new ListContent(bookings);
        var request = new HttpRequestMessage(HttpMethod.Post, Url(lookupUrl, "reconcile", allowEmpty ? "?allowEmpty=true" : ""));
        request.Content = list;
        request.Headers.TransferEncodingChunked = true;
        BookingEventsException fault = null;
        Exception problemOfCaller = null;
        using (var ending = new CancellationTokenSource(TimeSpan.FromMinutes(10)))
        {
            try
            {
                using (var response = await http.SendAsync(request, HttpCompletionOption.ResponseHeadersRead, ending.Token).ConfigureAwait(false))
                using (ending.Token.Register(response.Dispose))
                {
                    if (response.StatusCode != HttpStatusCode.OK)
                        throw Judge<object>(response, await ReadAsync(response).ConfigureAwait(false), text => null).Fault;
                    using (var reader = new StreamReader(await response.Content.ReadAsStreamAsync().ConfigureAwait(false), new UTF8Encoding(false, true)))
                    {
                        for (string line; (line = await reader.ReadLineAsync().ConfigureAwait(false)) != null;)
                        {
                            var value = Parse(line);
                            if (value.ContainsKey("summary")) return (Dictionary<string, object>)value["summary"];
                            if (!value.ContainsKey("result")) break;
                            try { difference(value); }
                            catch (Exception problem) { problemOfCaller = problem; throw; }
                        }
                    }
                }
            }
            catch (Exception problem) when (problem != problemOfCaller && IsOfNetwork(problem))
            {
                if (list.Problem == null) fault = NoAnswer(problem, ending.IsCancellationRequested, "The answer is not complete.");
            }
        }
        if (list.Problem != null) throw list.Problem;
        fault = fault ?? new BookingEventsException("network-error", "The answer is not complete.", true);
        fault.Attempts = 1;
        throw fault;
    }

    /// <summary>The digest of a booking's content, as BookingAsync and ReconcileAsync use it: of the payload of the last create or update.</summary>
    public static string Digest(IDictionary payload)
    {
        // The service stores U+FFFD in place of U+0000 and of half a surrogate pair. The rest have other escapes.
        var stored = Regex.Replace(ToJson(payload), @"\\(?:u0000|ud[89a-f]..|.)", found => found.Length == 2 ? found.Value : "\ufffd");
        using (var sha256 = SHA256.Create())
            return string.Concat(sha256.ComputeHash(Encoding.UTF8.GetBytes(stored)).Select(each => each.ToString("x2")));
    }

    private Task<Dictionary<string, object>> SendAsync(string kind, IDictionary payload, string idempotencyKey, bool dryRun)
    {
        var key = CheckKey(idempotencyKey);
        // Every attempt must send the same bytes and key: then a repetition counts once.
        var body = ToJson(payload);
        Func<HttpRequestMessage> post = () =>
        {
            var request = Post(Url(baseUrl, kind), body, "application/json")();
            request.Headers.TryAddWithoutValidation("Idempotency-Key", key);
            if (dryRun) request.Headers.Add("X-Dry-Run", "true");
            return request;
        };
        return CallAsync(post, key, text =>
        {
            var answer = Parse(text);
            var isProof = dryRun ? Equals(Member(answer, "dryRun"), true) : Member(answer, "eventId") is string;
            return Equals(Member(answer, "success"), true) && isProof ? answer : null;
        });
    }

    private async Task<Dictionary<string, object>> AskAsync(string url, string member, string codeOfNothing)
    {
        try
        {
            return await CallAsync(() => new HttpRequestMessage(HttpMethod.Get, url), null, text =>
            {
                var answer = Parse(text);
                return answer.Count > 0 && (member == null || answer.ContainsKey(member)) ? answer : null;
            }).ConfigureAwait(false);
        }
        catch (BookingEventsException error) when (codeOfNothing != null && error.Code == codeOfNothing)
        {
            return null;
        }
    }

    private async Task<T> CallAsync<T>(Func<HttpRequestMessage> request, string key, Func<string, T> accept) where T : class
    {
        for (var retry = new Retry(this, TotalTimeout, key); ;)
        {
            var outcome = await AttemptAsync(request, retry.Timeout(AttemptTimeout), accept, key != null).ConfigureAwait(false);
            if (outcome.Fault == null) return outcome.Answer;
            await retry.WaitAsync(outcome.Fault).ConfigureAwait(false);
        }
    }

    private string Url(string service, string kind, string more = "")
        => service + "/booking-event/" + kind + "/" + Uri.EscapeDataString(secret) + more;

    private static Func<HttpRequestMessage> Post(string url, string body, string type) => () =>
    {
        var content = new ByteArrayContent(new UTF8Encoding(false).GetBytes(body));
        content.Headers.ContentType = new MediaTypeHeaderValue(type);
        var request = new HttpRequestMessage(HttpMethod.Post, url) { Content = content };
        // Otherwise some versions would wait for "100 Continue" before they send a body.
        request.Headers.ExpectContinue = false;
        return request;
    };

    private async Task<Outcome<T>> AttemptAsync<T>(
        Func<HttpRequestMessage> request, TimeSpan timeout, Func<string, T> accept, bool isEvent) where T : class
    {
        using (var ending = new CancellationTokenSource(timeout))
        {
            try
            {
                using (var response = await http.SendAsync(request(), HttpCompletionOption.ResponseHeadersRead, ending.Token).ConfigureAwait(false))
                using (ending.Token.Register(response.Dispose))
                    return Judge(response, await ReadAsync(response).ConfigureAwait(false), accept);
            }
            catch (Exception problem) when (IsOfNetwork(problem))
            {
                var more = isEvent ? "The event may have been accepted." : "";
                return new Outcome<T> { Fault = NoAnswer(problem, ending.IsCancellationRequested, more) };
            }
        }
    }

    private Outcome<T> Judge<T>(HttpResponseMessage response, string text, Func<string, T> accept) where T : class
    {
        var status = (int)response.StatusCode;
        var answer = status == 200 ? accept(text) : null;
        if (answer != null) return new Outcome<T> { Answer = answer };
        var body = Parse(Hide(text));
        // A 200 without our body may come from a proxy, and says nothing about the event.
        var retryable = status == 200 || IsRetryable(status);
        BookingEventsException fault;
        if (status >= 300 && status < 400)
            fault = new BookingEventsException("redirected", "The server redirects to another address. Correct baseUrl.", false);
        else if (status >= 400 && Member(body, "code") is string code && Member(body, "message") is string message)
            fault = new BookingEventsException(code, message, retryable) { Violations = ListOf(body, "violationList") };
        else
            fault = new BookingEventsException("unexpected-answer", "An answer with status " + status
                + " arrived that is not the service's. Check baseUrl and proxies.", retryable);
        fault.Status = status;
        fault.RequestId = response.Headers.TryGetValues("X-Request-Id", out var ids) ? Hide(ids.First()) : null;
        var after = response.Headers.RetryAfter;
        // A date is compared with the server's clock, because ours may be wrong.
        var until = after?.Date - (response.Headers.Date ?? DateTimeOffset.UtcNow);
        fault.RetryAfter = after?.Delta ?? (until < TimeSpan.Zero ? TimeSpan.Zero : until);
        return new Outcome<T> { Fault = fault };
    }

    private static async Task<string> ReadAsync(HttpResponseMessage response)
    {
        using (var stream = await response.Content.ReadAsStreamAsync().ConfigureAwait(false))
        {
            var text = new MemoryStream();
            var part = new byte[65536];
            for (int count; (count = await stream.ReadAsync(part, 0, part.Length).ConfigureAwait(false)) > 0;)
            {
                text.Write(part, 0, count);
                if (text.Length > MaxAnswerBytes) return "";
            }
            if (response.Content.Headers.ContentLength > text.Length) throw new IOException();
            return Encoding.UTF8.GetString(text.ToArray());
        }
    }

    private static bool IsOfNetwork(Exception problem)
        => problem is HttpRequestException || problem is IOException || problem is OperationCanceledException
            || problem is ObjectDisposedException || problem is WebException || problem is DecoderFallbackException;

    private static BookingEventsException NoAnswer(Exception problem, bool isTimeout, string more)
    {
        // Only the type: a message could contain the path, and thus the secret.
        var message = "No answer arrived (" + problem.GetBaseException().GetType().Name + "). " + more;
        return new BookingEventsException(isTimeout ? "timeout" : "network-error", message.Trim(), true);
    }

    private static bool IsRetryable(int status)
        => status != 200 && (status >= 500 || status < 400 || status == 408 || status == 429);

    /// <summary>A proxy may repeat the URL. A placeholder in a test, such as "secret", is also part of ordinary words.</summary>
    private string Hide(string text)
        => secret.Length < 16 ? text : text.Replace(secret, "[secret]").Replace(Uri.EscapeDataString(secret), "[secret]");

    private static string CheckUrl(string text, string name)
    {
        var isUrl = Uri.TryCreate(text, UriKind.Absolute, out var url);
        if (!isUrl || !(url.Scheme == "https" || (url.Scheme == "http" && url.IsLoopback)))
            throw new ArgumentException(name + " must be an https URL, such as https://bookings.example.com.");
        if (url.UserInfo != "" || url.Query != "" || url.Fragment != "" || url.AbsolutePath.Contains("/booking-event"))
            throw new ArgumentException(name + " must end before /booking-event.");
        return text.TrimEnd('/');
    }

    private static string CheckKey(string given)
    {
        var key = given ?? Guid.NewGuid().ToString();
        // HTTP leaves out spaces around a header's value, and the service quotes.
        if (!Regex.IsMatch(key, "\\A(?!\".*\"\\z)[!-~](?:[ -~]{0,253}[!-~])?\\z"))
            throw new ArgumentException("idempotencyKey must have 1 to 255 visible ASCII characters, with spaces only inside, "
                + "and no quotes around.");
        return key;
    }

    /// <summary>Of the line at which the answer to a batch ends: it and those after it are to be sent again.</summary>
    private static BookingEventsException FaultOfLine(Dictionary<string, object> answer)
    {
        var code = Member(answer, "code") as string ?? "queue-unavailable";
        var message = Member(answer, "message") as string ?? "The rest cannot be stored now.";
        var after = Member(answer, "retryAfter");
        return new BookingEventsException(code, message, true)
        {
            Status = Convert.ToInt32(Member(answer, "status")),
            RetryAfter = after == null ? (TimeSpan?)null : TimeSpan.FromSeconds(Convert.ToDouble(after)),
        };
    }

    private static object Member(Dictionary<string, object> body, string name) => body.TryGetValue(name, out var value) ? value : null;

    private static IList<Dictionary<string, object>> ListOf(Dictionary<string, object> body, string name)
        => (Member(body, name) as List<object> ?? new List<object>()).OfType<Dictionary<string, object>>().ToList();

    private sealed class Outcome<T>
    {
        public T Answer;
        public BookingEventsException Fault;
    }

    private sealed class Retry
    {
        private readonly BookingEventsClient client;
        private readonly System.Diagnostics.Stopwatch clock = System.Diagnostics.Stopwatch.StartNew();
        private readonly TimeSpan total;
        private readonly string key;
        private int attempts;

        public Retry(BookingEventsClient client, TimeSpan total, string key)
        {
            this.client = client;
            this.total = total;
            this.key = key;
        }

        public TimeSpan Timeout(TimeSpan longest)
        {
            attempts += 1;
            return TimeSpan.FromMilliseconds(Math.Max(1, Math.Min(longest.TotalMilliseconds, (total - clock.Elapsed).TotalMilliseconds)));
        }

        /// <summary>The random part spreads the retries of many senders. The wait is never shorter than Retry-After.</summary>
        public Task WaitAsync(BookingEventsException fault)
        {
            var delayMs = Math.Min(client.FirstRetryDelay.TotalMilliseconds * Math.Pow(2, attempts - 1), LongestRetryDelayMs);
            double random;
            lock (Random) random = Random.NextDouble();
            delayMs = fault.RetryAfter is TimeSpan after ? after.TotalMilliseconds + delayMs * random : delayMs * (0.5 + random / 2);
            fault.Attempts = attempts;
            fault.IdempotencyKey = key;
            var isLast = attempts >= client.MaxAttempts || clock.Elapsed.TotalMilliseconds + delayMs >= total.TotalMilliseconds;
            if (isLast || !fault.Retryable) throw fault;
            return Task.Delay(TimeSpan.FromMilliseconds(delayMs));
        }
    }

    /// <summary>A list as NDJSON, made while it is sent.</summary>
    private sealed class ListContent : HttpContent
    {
        private readonly IEnumerable<IDictionary> items;
        public Exception Problem;

        public ListContent(IEnumerable<IDictionary> items)
        {
            this.items = items;
            Headers.ContentType = new MediaTypeHeaderValue("application/x-ndjson");
        }

        protected override async Task SerializeToStreamAsync(Stream stream, TransportContext context)
        {
            using (var lines = items.GetEnumerator())
            {
                for (string line; (line = Next(lines)) != null;)
                {
                    var bytes = Encoding.UTF8.GetBytes(line);
                    await stream.WriteAsync(bytes, 0, bytes.Length).ConfigureAwait(false);
                }
            }
        }

        private string Next(IEnumerator<IDictionary> lines)
        {
            try
            {
                return lines.MoveNext() ? ToJson(lines.Current) + "\n" : null;
            }
            catch (Exception problem)
            {
                Problem = problem;
                throw new IOException("The list cannot be read.", problem);
            }
        }

        protected override bool TryComputeLength(out long length)
        {
            length = -1;
            return false;
        }
    }

    /// <summary>Canonical JSON (RFC 8785), with all digits: what is sent, and what the digest is of.</summary>
    private static string ToJson(object value)
    {
        var invariant = CultureInfo.InvariantCulture;
        if (value == null) return "null";
        if (value is bool) return (bool)value ? "true" : "false";
        if (value is string) return Quote((string)value);
        if (value is DateTime)
        {
            var time = (DateTime)value;
            return Quote(time.ToString(time.TimeOfDay == TimeSpan.Zero ? "yyyy-MM-dd" : "yyyy-MM-dd'T'HH:mm:ssK", invariant));
        }
        if (value is DateTimeOffset) return Quote(((DateTimeOffset)value).ToString("yyyy-MM-dd'T'HH:mm:sszzz", invariant));
#if NET6_0_OR_GREATER
        if (value is DateOnly) return Quote(((DateOnly)value).ToString("yyyy-MM-dd", invariant));
#endif
        if (value is double || value is float) return Canonical(((IFormattable)value).ToString("R", invariant));
        if (value is decimal || value is BigInteger || (value.GetType().IsPrimitive && !(value is char)))
            return Canonical(((IFormattable)value).ToString(null, invariant));
        // By UTF-16 code units, with U+FFFD in place of what cannot be stored.
        if (value is IDictionary members)
            return "{" + string.Join(",", members.Keys.Cast<string>().OrderBy(Storable, StringComparer.Ordinal)
                .Select(name => Quote(name) + ":" + ToJson(members[name]))) + "}";
        if (value is IEnumerable items) return "[" + string.Join(",", items.Cast<object>().Select(ToJson)) + "]";
        throw new ArgumentException("A payload cannot contain " + value.GetType() + ".");
    }

    private static readonly Regex LoneSurrogate = new Regex("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]");

    private static string Storable(string text) => LoneSurrogate.Replace(text, "\ufffd").Replace('\0', '\ufffd');

    private static string Quote(string text)
    {
        const string Short = "\b\t\n\f\r\"\\";
        var escaped = Regex.Replace(text, "[\0-\x1f\"\\\\]", found => Short.IndexOf(found.Value[0]) >= 0
            ? "\\" + "btnfr\"\\"[Short.IndexOf(found.Value[0])]
            : "\\u" + ((int)found.Value[0]).ToString("x4"));
        return "\"" + LoneSurrogate.Replace(escaped, found => "\\u" + ((int)found.Value[0]).ToString("x4")) + "\"";
    }

    private static string Canonical(string written)
    {
        var found = Regex.Match(written, @"^(-?)(\d+)(?:\.(\d+))?(?:[eE]([-+]?\d+))?$");
        if (!found.Success) throw new ArgumentException("A payload cannot contain infinity.");
        var (sign, fraction) = (found.Groups[1].Value, found.Groups[3].Value);
        var digits = (found.Groups[2].Value + fraction).TrimStart('0');
        var point = digits.Length - fraction.Length + (found.Groups[4].Success ? int.Parse(found.Groups[4].Value) : 0);
        digits = digits.TrimEnd('0');
        if (digits == "") return "0";
        if (point > 0 && point <= 21)
            return sign + (digits.Length <= point ? digits.PadRight(point, '0') : digits.Substring(0, point) + "." + digits.Substring(point));
        if (point > -6 && point <= 0) return sign + "0." + new string('0', -point) + digits;
        return sign + digits[0] + (digits.Length > 1 ? "." + digits.Substring(1) : "") + "e" + (point > 0 ? "+" : "") + (point - 1);
    }

    /// <summary>Returns an empty dictionary for what is no JSON object.</summary>
    private static Dictionary<string, object> Parse(string json)
    {
        try
        {
            var at = 0;
            var value = ParseValue(json, NextToken(json, ref at), ref at) as Dictionary<string, object>;
            return value != null && json.Substring(at).Trim() == "" ? value : new Dictionary<string, object>();
        }
        catch (FormatException)
        {
            return new Dictionary<string, object>();
        }
    }

    private static readonly Regex Token = new Regex(@"\G\s*([\[\]{},:]|""(?:[^""\\]|\\.)*""|-?\d[-+.0-9eE]*|true|false|null)");

    private static string NextToken(string json, ref int at)
    {
        var found = Token.Match(json, at);
        if (!found.Success) throw new FormatException();
        at += found.Length;
        return found.Groups[1].Value;
    }

    private static object ParseValue(string json, string token, ref int at)
    {
        switch (token[0])
        {
            case '{':
                var members = new Dictionary<string, object>();
                for (var name = NextToken(json, ref at); name != "}"; name = NextToken(json, ref at))
                {
                    if (name == ",") name = NextToken(json, ref at);
                    if (NextToken(json, ref at) != ":") throw new FormatException();
                    members[Unquote(name)] = ParseValue(json, NextToken(json, ref at), ref at);
                }
                return members;
            case '[':
                var items = new List<object>();
                for (var item = NextToken(json, ref at); item != "]"; item = NextToken(json, ref at))
                    items.Add(ParseValue(json, item == "," ? NextToken(json, ref at) : item, ref at));
                return items;
            case '"': return Unquote(token);
            case 't': return true;
            case 'f': return false;
            case 'n': return null;
            case ']':
            case '}':
            case ',':
            case ':': throw new FormatException();
        }
        if (long.TryParse(token, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture, out var whole)) return whole;
        return double.Parse(token, CultureInfo.InvariantCulture);
    }

    private static string Unquote(string token)
        => Regex.Replace(token.Substring(1, token.Length - 2), @"\\(?:u([0-9a-fA-F]{4})|(.))", found =>
        {
            if (found.Groups[1].Success) return ((char)Convert.ToInt32(found.Groups[1].Value, 16)).ToString();
            var place = "bfnrt".IndexOf(found.Groups[2].Value[0]);
            return place < 0 ? found.Groups[2].Value : "\b\f\n\r\t"[place].ToString();
        });
}
