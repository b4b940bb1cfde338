using System;
using System.Collections;
using System.Collections.Generic;
using System.Globalization;
using System.Linq;
using System.Numerics;
using System.Reflection;
using System.Text;

static class Adapter
{
    static void Main()
    {
        var proxy = Environment.GetEnvironmentVariable("HTTPS_PROXY");
        // As HttpClient.DefaultProxy is set in .NET.
        if (!string.IsNullOrEmpty(proxy)) System.Net.WebRequest.DefaultWebProxy = new System.Net.WebProxy(proxy);
        var input = new System.IO.StreamReader(Console.OpenStandardInput(), new UTF8Encoding(false));
        var output = new System.IO.StreamWriter(Console.OpenStandardOutput(), new UTF8Encoding(false)) { AutoFlush = true, NewLine = "\n" };
        for (string line; (line = input.ReadLine()) != null;)
            output.WriteLine(Hidden("ToJson", Answer((Dictionary<string, object>)Hidden("Parse", line))));
    }

    static object Hidden(string name, object argument)
        => typeof(BookingEventsClient).GetMethod(name, BindingFlags.NonPublic | BindingFlags.Static).Invoke(null, new[] { argument });

    static Dictionary<string, object> Answer(Dictionary<string, object> call)
    {
        var shown = new List<object>();
        var result = new Dictionary<string, object>();
        try
        {
            var client = new BookingEventsClient((string)call["baseUrl"], (string)call["secret"], (string)call["lookupUrl"])
            {
                MaxAttempts = Convert.ToInt32(call["maxAttempts"]),
                FirstRetryDelay = Seconds(call["firstRetryDelayS"]),
                AttemptTimeout = Seconds(call["attemptTimeoutS"]),
                TotalTimeout = Seconds(call["totalTimeoutS"]),
            };
            shown.Add(client.ToString());
            result["answer"] = Perform(client, call);
        }
        catch (BookingEventsException error)
        {
            result["message"] = error.Message;
            result["code"] = error.Code;
            result["retryable"] = error.Retryable;
            result["attempts"] = error.Attempts;
            result["key"] = error.IdempotencyKey;
            result["status"] = error.Status == 0 ? null : (object)error.Status;
            result["requestId"] = error.RequestId;
            result["violations"] = error.Violations;
            result["retryAfterS"] = error.RetryAfter == null ? null : (object)error.RetryAfter.Value.TotalSeconds;
            shown.Add(error.ToString());
        }
        catch (ArgumentException error)
        {
            result["invalid"] = error.Message;
            shown.Add(error.ToString());
        }
        return new Dictionary<string, object> { ["result"] = result, ["shown"] = shown };
    }

    static object Perform(BookingEventsClient client, Dictionary<string, object> call)
    {
        var payload = Native(call["payload"]);
        var items = new List<object>();
        var key = (string)call["key"];
        var isDryRun = Equals(call["dryRun"], true);
        switch ((string)call["method"])
        {
            case "digest": return BookingEventsClient.Digest((IDictionary)payload);
            case "receipt": return client.ReceiptAsync((string)payload).GetAwaiter().GetResult();
            case "booking": return client.BookingAsync((string)payload, "consumer", (string)call["fields"] == "" ? null : (string)call["fields"]).GetAwaiter().GetResult();
            case "activity":
                var day = payload == null ? (DateTime?)null : DateTime.Parse((string)payload);
                return client.ActivityAsync(day).GetAwaiter().GetResult();
            case "reconcile":
                var list = ((List<object>)payload).Cast<IDictionary>();
                var end = client.ReconcileAsync(list, items.Add, Equals(call["allowEmpty"], true)).GetAwaiter().GetResult();
                return new Dictionary<string, object> { ["items"] = items, ["end"] = end };
            case "batch":
                client.BatchAsync(((List<object>)payload).Cast<IDictionary>(), items.Add).GetAwaiter().GetResult();
                return new Dictionary<string, object> { ["items"] = items };
            case "create": return client.CreateAsync((IDictionary)payload, key, isDryRun).GetAwaiter().GetResult();
            case "update": return client.UpdateAsync((IDictionary)payload, key, isDryRun).GetAwaiter().GetResult();
            default: return client.DeleteAsync((IDictionary)payload, key, isDryRun).GetAwaiter().GetResult();
        }
    }

    static object Native(object value)
    {
        var items = value as List<object>;
        if (items != null) return items.Select(Native).ToList();
        var members = value as Dictionary<string, object>;
        if (members == null) return value;
        var invariant = CultureInfo.InvariantCulture;
        if (members.ContainsKey("$object")) return new Dictionary<string, object>();
        if (members.ContainsKey("$day")) return DateTime.ParseExact((string)members["$day"], "yyyy-MM-dd", invariant);
        if (members.ContainsKey("$time")) return DateTimeOffset.Parse((string)members["$time"], invariant);
        if (members.ContainsKey("$integer")) return BigInteger.Parse((string)members["$integer"], invariant);
        if (members.ContainsKey("$float")) return double.Parse((string)members["$float"], invariant);
        return members.ToDictionary(member => member.Key, member => Native(member.Value));
    }

    static TimeSpan Seconds(object number) => TimeSpan.FromSeconds(Convert.ToDouble(number, CultureInfo.InvariantCulture));
}
