import datetime, json, sys, traceback
import booking_events
from booking_events import BookingEvents, BookingEventsError


def native(value):
    if isinstance(value, list):
        return [native(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$object" in value:
        return {}
    if "$day" in value:
        return datetime.date.fromisoformat(value["$day"])
    if "$time" in value:
        return datetime.datetime.fromisoformat(value["$time"])
    if "$integer" in value:
        return int(value["$integer"])
    if "$float" in value:
        return float(value["$float"])
    return {name: native(member) for name, member in value.items()}


def collect(generator):
    items = []
    while True:
        try:
            items.append(next(generator))
        except StopIteration as end:
            return {"items": items, "end": end.value}


def perform(client, call):
    method, payload = call["method"], native(call["payload"])
    if method == "digest":
        return booking_events.digest(payload)
    if method == "receipt":
        return client.receipt(payload)
    if method == "booking":
        return client.booking(payload, reference_kind="consumer", fields=call["fields"])
    if method == "activity":
        return client.activity(day=payload)
    if method == "reconcile":
        return collect(client.reconcile(iter(payload), allow_empty=call["allowEmpty"]))
    if method == "batch":
        return collect(client.batch(iter(payload)))
    return getattr(client, method)(payload, idempotency_key=call["key"], dry_run=call["dryRun"])


for line in sys.stdin:
    call = json.loads(line)
    shown = []
    try:
        client = BookingEvents(call["baseUrl"], call["secret"], lookup_url=call["lookupUrl"], first_retry_delay=call["firstRetryDelayS"],
                               max_attempts=call["maxAttempts"], attempt_timeout=call["attemptTimeoutS"],
                               total_timeout=call["totalTimeoutS"])
        shown += [repr(client), str(client)]
        result = {"answer": perform(client, call)}
    except BookingEventsError as error:
        result = {"message": str(error), "code": error.code, "retryable": error.retryable, "attempts": error.attempts,
                  "key": error.idempotency_key, "status": error.status, "requestId": error.request_id,
                  "violations": error.violations, "retryAfterS": error.retry_after}
        shown += [repr(error), traceback.format_exc(), str(error.__cause__), str(error.__context__)]
    except (TypeError, ValueError) as error:
        result = {"invalid": str(error)}
        shown += [traceback.format_exc()]
    print(json.dumps({"result": result, "shown": shown}), flush=True)
