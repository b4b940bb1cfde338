"""Sends booking events, asks what became of them, and compares bookings.

Copy this file into your project. It needs Python 3.9 or newer, and no other package.

    bookings = BookingEvents("https://bookings.example.com", os.environ["BOOKING_EVENTS_SECRET"])
    answer = bookings.create(
        {"consumerTripPartnerExternalReference": "TRIP-1", "consumerTripArrivalDate": datetime.date(2027, 6, 14)},
        idempotency_key="TRIP-1/version-1",  # Each event needs a key of its own.
    )
    for warning in answer.get("warnings", []):
        log.warning("%s: %s", warning["propertyPath"], warning["message"])

A date in a payload is sent as 2027-06-14, and a datetime with the offset that it has. The environment variables
HTTPS_PROXY and NO_PROXY are honoured.
"""

import base64
import datetime
import decimal
import email.utils
import hashlib
import http.client
import itertools
import json
import math
import random
import re
import socket
import ssl
import time
import urllib.parse
import urllib.request
import uuid

VERSION = "0.1.0"
MAX_ANSWER_BYTES = 16_777_216
LONGEST_RETRY_DELAY = 30.0
#: So few that a slow rate limit lets all of them through before the time-out.
EVENTS_PER_REQUEST = 100
#: Long, because the service reads a batch as slowly as the rate limit demands.
BATCH_TIMEOUT = 300.0


class BookingEventsError(Exception):
    """What was sent was not accepted, or no answer said that it was. Contains neither the secret nor the payload."""

    def __init__(self, message, *, code, retryable, attempts, idempotency_key=None, status=None, request_id=None,
                 violations=(), retry_after=None):
        super().__init__(message)
        #: The reason: a code of the service, or network-error, timeout, redirected, unexpected-answer.
        self.code = code
        #: If true, send the same event again later, with the same idempotency key.
        self.retryable = retryable
        self.attempts = attempts
        self.idempotency_key = idempotency_key
        self.status = status
        #: Quote it when you ask for support.
        self.request_id = request_id
        #: Of an answer with status 422: dicts with message, code and propertyPath.
        self.violations = list(violations)
        #: How many seconds the service asked to wait.
        self.retry_after = retry_after


class BookingEvents:
    """Sends events until they are accepted, refused for good, or out of attempts or time. Times are in seconds.

    An instance may be used by several threads.
    """

    def __init__(self, base_url, secret, *, lookup_url=None, attempt_timeout=10.0, total_timeout=60.0, max_attempts=5,
                 first_retry_delay=1.0):
        self._ingest = _parse_url(base_url, "base_url")
        #: The address for questions, if it is another one.
        self._lookup = _parse_url(lookup_url or base_url, "lookup_url")
        if not secret or re.search(r"\s|^\.\.?$", secret):
            raise ValueError("secret must be the secret that we gave you, without white space.")
        self._secret = secret
        self._attempt_timeout = attempt_timeout
        self._total_timeout = total_timeout
        self._max_attempts = max_attempts
        self._first_retry_delay = first_retry_delay

    def create(self, booking, *, idempotency_key=None, dry_run=False):
        """A booking is new. Send the whole booking."""
        return self._send("create", booking, idempotency_key, dry_run)

    def update(self, booking, *, idempotency_key=None, dry_run=False):
        """A booking has changed. Send the whole booking: fields that you omit are removed."""
        return self._send("update", booking, idempotency_key, dry_run)

    def delete(self, reference, *, idempotency_key=None, dry_run=False):
        """A booking is gone. Send its reference."""
        return self._send("delete", reference, idempotency_key, dry_run)

    def batch(self, events, *, dry_run=False):
        """Sends many events, given as dicts with kind, payload and idempotencyKey.

        Yields a dict for each, in their order, when it is decided: idempotencyKey, status, and eventId and warnings, or
        code, message and violationList. Raises if the rest cannot be sent now.
        """
        numbers, events = itertools.count(1), iter(events)
        headers = {"Content-Type": "application/x-ndjson", **({"X-Dry-Run": "true"} if dry_run else {})}
        while part := list(itertools.islice(events, EVENTS_PER_REQUEST)):
            rest = [{**event, "idempotencyKey": _key(event.get("idempotencyKey"))} for event in part]
            retry = _Retry(self, BATCH_TIMEOUT)
            while rest:
                body = "".join(_json(event) + "\n" for event in rest).encode("utf-8", "backslashreplace")
                request = ("POST", self._ingest, self._path("batch"), body, headers)
                answers, fault = self._attempt(request, retry.timeout(BATCH_TIMEOUT), _parse_lines, True)
                for index, answer in enumerate(answers or []):
                    # A 403 that ends the answer early is about the secret, not about the event.
                    is_ended = answer.get("status") == 403 and index + 1 == len(answers) and len(rest) > 1
                    if not rest or is_ended or _is_retryable(answer.get("status", 0)):
                        fault = self._fault_of_line(answer)
                        break
                    yield {**answer, "line": next(numbers), "idempotencyKey": rest.pop(0)["idempotencyKey"]}
                    retry = _Retry(self, BATCH_TIMEOUT)
                if rest:
                    retry.wait(fault or self._fault_of_line({}))

    def receipt(self, event_id):
        """Asks what became of an event. None: you have no such event, or it has left the log."""
        return self._ask(self._path("receipt", event_id), "eventId", "no-such-event")

    def booking(self, reference, *, reference_kind="trip", fields=""):
        """Asks how a booking stands. None: the service has no such booking.

        With fields, as "consumerPhone,agentEmail" or "all", the answer has what the service reads of them, in readings.
        """
        query = {"reference": reference, "referenceKind": reference_kind, **({"fields": fields} if fields else {})}
        return self._ask(self._path("booking") + "?" + urllib.parse.urlencode(query), "state", "no-such-booking")

    def activity(self, *, day=None):
        """Asks what the service received from you in the last 48 hours, or on a day in UTC, and what it refused."""
        return self._ask(self._path("activity") + ("" if day is None else f"?day={day}"), None, None)

    def reconcile(self, bookings, *, allow_empty=False, timeout=600.0):
        """Compares all bookings that are active at your end, given as dicts with reference and digest, with the service's.

        Yields each difference, and returns the counts. The list is sent while it is read. Nothing is retried.
        """
        faults_of_list = []
        connection = _connect(self._lookup, timeout)
        fault = None
        try:
            path = self._lookup.path + self._path("reconcile") + ("?allowEmpty=true" if allow_empty else "")
            headers = {"Content-Type": "application/x-ndjson"}
            chunks = _chunks(bookings, faults_of_list)
            response = _response(connection, "POST", path, chunks, headers, faults_of_list)
            if response.status != 200:
                _, fault = self._judge(response, _read(response, time.monotonic() + timeout), None)
            while fault is None:
                line = response.readline(65_536)
                value = _parse(line) if line.endswith(b"\n") else {}
                if "summary" in value:
                    return value["summary"]
                if "result" not in value:
                    raise http.client.IncompleteRead(b"")
                yield value
        except (OSError, http.client.HTTPException) as error:
            if faults_of_list:
                raise
            fault = _no_answer(error, "The answer is not complete.")
        finally:
            connection.close()
        raise BookingEventsError(**fault, attempts=1)

    def _send(self, kind, payload, idempotency_key, dry_run):
        key = _key(idempotency_key)
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        if dry_run:
            headers["X-Dry-Run"] = "true"
        # Every attempt must send the same bytes and key: then a repetition counts once.
        body = _json(payload).encode("utf-8", "backslashreplace")

        def accept(text):
            answer = _parse(text)
            is_proof = answer.get("dryRun") is True if dry_run else isinstance(answer.get("eventId"), str)
            return answer if answer.get("success") is True and is_proof else None

        return self._call(("POST", self._ingest, self._path(kind), body, headers), accept, key)

    def _ask(self, path, member, code_of_nothing):
        def accept(text):
            answer = _parse(text)
            return answer if answer and (member is None or member in answer) else None

        try:
            return self._call(("GET", self._lookup, path, None, {}), accept, None)
        except BookingEventsError as error:
            if error.code != code_of_nothing:
                raise
        return None

    def _call(self, request, accept, key):
        retry = _Retry(self, self._total_timeout, key)
        while True:
            answer, fault = self._attempt(request, retry.timeout(self._attempt_timeout), accept, key is not None)
            if fault is None:
                return answer
            retry.wait(fault)

    def _path(self, kind, *more):
        return "/booking-event/" + "/".join([kind, *(urllib.parse.quote(part, safe="") for part in (self._secret, *more))])

    def _attempt(self, request, timeout, accept, is_event):
        """Returns what `accept` makes of a 200, and the fault. Redirects are not followed: they would pass on the secret."""
        method, service, path, body, headers = request
        end = time.monotonic() + timeout
        connection = _connect(service, timeout)
        try:
            response = _response(connection, method, service.path + path, body, headers)
            return self._judge(response, _read(response, end), accept)
        except (OSError, http.client.HTTPException) as error:
            return None, _no_answer(error, "The event may have been accepted." if is_event else "")
        finally:
            connection.close()

    def _judge(self, response, text, accept):
        status = response.status
        answer = accept(text) if status == 200 else None
        if answer is not None:
            return answer, None
        about = {"status": status, "request_id": self._hide(response.getheader("X-Request-Id"))}
        if 300 <= status < 400:
            return None, _fault("redirected", "The server redirects to another address. Correct base_url.", False, **about)
        about["retry_after"] = _retry_after(response.getheader("Retry-After"), response.getheader("Date"))
        body = _parse(text)
        code, message = body.get("code"), body.get("message")
        if status < 400 or not isinstance(code, str) or not isinstance(message, str):
            message = f"An answer with status {status} arrived that is not the service's. Check base_url and proxies."
            # A 200 without our body may come from a proxy, and says nothing about the event.
            return None, _fault("unexpected-answer", message, status == 200 or _is_retryable(status), **about)
        about["violations"] = json.loads(self._hide(json.dumps(body.get("violationList", []))))
        return None, _fault(self._hide(code), self._hide(message), _is_retryable(status), **about)

    def _fault_of_line(self, answer):
        """Of the line at which the answer to a batch ends: it and those after it are to be sent again."""
        code, message = answer.get("code", "queue-unavailable"), answer.get("message", "The rest cannot be stored now.")
        about = {"status": answer.get("status"), "retry_after": answer.get("retryAfter")}
        return _fault(self._hide(code), self._hide(message), True, **about)

    def _hide(self, text):
        """A proxy may repeat the URL. A placeholder in a test, such as "secret", is also part of ordinary words."""
        if text is None or len(self._secret) < 16:
            return text
        return text.replace(self._secret, "[secret]").replace(urllib.parse.quote(self._secret, safe=""), "[secret]")


def digest(payload):
    """Returns the digest of a booking's content, as `booking` and `reconcile` use it.

    The payload is that of the last create or update, with all fields. The service stores U+FFFD in place of U+0000 and
    of half a surrogate pair.
    """
    text = re.sub("\\\\(?:u0000|.)|[\ud800-\udfff]", lambda found: found[0] if len(found[0]) == 2 else "\ufffd", _json(payload))
    return hashlib.sha256(text.encode()).hexdigest()


class _Retry:
    def __init__(self, client, total_timeout, key=None):
        self._client, self._key, self._attempts = client, key, 0
        self._deadline = time.monotonic() + total_timeout

    def timeout(self, longest):
        self._attempts += 1
        return max(0.001, min(longest, self._deadline - time.monotonic()))

    def wait(self, fault):
        """The random part spreads the retries of many senders. The wait is never shorter than Retry-After."""
        delay = min(self._client._first_retry_delay * 2 ** (self._attempts - 1), LONGEST_RETRY_DELAY)
        after = fault["retry_after"]
        delay = delay * random.uniform(0.5, 1) if after is None else after + delay * random.random()
        is_last = self._attempts >= self._client._max_attempts or time.monotonic() + delay >= self._deadline
        if is_last or not fault["retryable"]:
            raise BookingEventsError(**fault, attempts=self._attempts, idempotency_key=self._key)
        time.sleep(delay)


def _parse_url(text, name):
    url = urllib.parse.urlsplit(text)
    is_local = url.hostname in ("localhost", "127.0.0.1", "::1")
    if not url.hostname or not (url.scheme == "https" or (url.scheme == "http" and is_local)):
        raise ValueError(f"{name} must be an https URL, such as https://bookings.example.com.")
    if url.username or url.password or url.query or url.fragment or "/booking-event" in url.path:
        raise ValueError(f"{name} must end before /booking-event.")
    return url._replace(path=url.path.rstrip("/"))


def _connect(url, timeout):
    if url.scheme == "http":
        return http.client.HTTPConnection(url.hostname, url.port, timeout=timeout)
    context = ssl.create_default_context()
    proxy = urllib.request.getproxies().get("https")
    if not proxy or urllib.request.proxy_bypass(url.hostname):
        return http.client.HTTPSConnection(url.hostname, url.port, timeout=timeout, context=context)
    via = urllib.parse.urlsplit(proxy if "//" in proxy else f"//{proxy}")
    login = f"{urllib.parse.unquote(via.username or '')}:{urllib.parse.unquote(via.password or '')}".encode()
    headers = {"Proxy-Authorization": f"Basic {base64.b64encode(login).decode()}"} if via.username else {}
    connection = http.client.HTTPSConnection(via.hostname, via.port or 80, timeout=timeout, context=context)
    connection.set_tunnel(url.hostname, url.port or 443, headers)
    return connection


def _response(connection, method, path, body, headers, faults_of_list=()):
    connection.connect()
    try:
        connection.request(method, path, body, headers)
    except OSError as error:
        # The service may have refused what was sent before its end.
        if faults_of_list or isinstance(error, socket.timeout):
            raise
    return connection.getresponse()


def _key(given):
    key = str(uuid.uuid4()) if given is None else given
    # HTTP leaves out spaces around a header's value, and the service quotes.
    if not re.fullmatch(r'(?!".*"$)[!-~](?:[ -~]{0,253}[!-~])?', key):
        raise ValueError("idempotency_key must have 1 to 255 visible ASCII characters, with spaces only inside, "
                         "and no quotes around.")
    return key


def _is_retryable(status):
    return status != 200 and (status >= 500 or status < 400 or status in (408, 429))


def _fault(code, message, retryable, *, status=None, request_id=None, violations=(), retry_after=None):
    return {"code": code, "message": message, "retryable": retryable, "status": status, "request_id": request_id,
            "violations": violations, "retry_after": retry_after}


def _no_answer(error, more):
    # Only the type: a message could contain the path, and thus the secret.
    code = "timeout" if isinstance(error, socket.timeout) else "network-error"
    return _fault(code, f"No answer arrived ({type(error).__name__}). {more}".strip(), True)


def _read(response, end):
    """A socket's time-out starts again with each packet, so this has a deadline of its own."""
    parts, size = [], 0
    while size <= MAX_ANSWER_BYTES:
        part = response.read1(65_536)
        if not part:
            if response.length:
                raise http.client.IncompleteRead(b"")
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if time.monotonic() >= end:
            raise socket.timeout
    return b""


def _parse(text):
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _parse_lines(text):
    return [_parse(line) for line in text.splitlines()] or None


def _json(value):
    """Canonical JSON (RFC 8785), with all digits: what is sent, and what the digest is of."""
    if isinstance(value, datetime.date):  # A datetime is one, too.
        value = value.isoformat()
    if isinstance(value, str):
        # Halves that stand side by side are one character.
        return json.dumps(value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass"), ensure_ascii=False)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) or (isinstance(value, (float, decimal.Decimal)) and math.isfinite(value)):
        return _number(float.__repr__(value) if isinstance(value, float) else str(value))
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_json, value))}]"
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        return f"{{{','.join(f'{_json(name)}:{_json(value[name])}' for name in sorted(value, key=_order))}}}"
    raise TypeError(f"A payload cannot contain {type(value).__name__}, nor infinity or names that are no texts.")


def _order(name):
    return re.sub("[\0\ud800-\udfff]", "\ufffd", json.loads(_json(name))).encode("utf-16-be")


def _number(written):
    found = re.fullmatch(r"(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?", written)
    sign, whole, fraction, exponent = found.groups(default="")
    digits = (whole + fraction).lstrip("0")
    point = len(digits) - len(fraction) + int(exponent or 0)
    digits = digits.rstrip("0")
    if not digits:
        return "0"
    if 0 < point <= 21:
        return sign + digits[:point].ljust(point, "0") + ("." + digits[point:] if digits[point:] else "")
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e{point - 1:+d}"


def _chunks(items, faults):
    try:
        items = iter(items)
        while part := list(itertools.islice(items, 1_000)):
            yield "".join(_json(item) + "\n" for item in part).encode()
    except Exception as error:
        faults.append(error)
        raise


def _retry_after(header, date):
    """Seconds, or a date, which is compared with the server's clock, because ours may be wrong."""
    if header is None:
        return None
    if re.fullmatch(r"[0-9]{1,9}", header):
        return float(header)
    try:
        until = email.utils.parsedate_to_datetime(header).timestamp()
        now = email.utils.parsedate_to_datetime(date).timestamp() if date else time.time()
    except (TypeError, ValueError, OverflowError):
        return None
    return max(0.0, until - now)
