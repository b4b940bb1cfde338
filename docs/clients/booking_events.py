"""Sends booking events.

Copy this file into your project. It needs Python 3.10 or newer, and no other package.

    bookings = BookingEvents("https://bookings.example.com", os.environ["BOOKING_EVENTS_SECRET"])
    answer = bookings.create(
        {"consumerTripPartnerExternalReference": "TRIP-1", "consumerTripArrivalDate": "2027-06-14"},
        idempotency_key="TRIP-1/version-1",  # Each event needs a key of its own.
    )
    for warning in answer.get("warnings", []):
        log.warning("%s: %s", warning["propertyPath"], warning["message"])

Write dates as date.isoformat() does, and times only with a zone, such as datetime.now(timezone.utc).isoformat().
"""

import email.utils
import http.client
import json
import random
import re
import ssl
import time
import urllib.parse
import uuid

MAX_ANSWER_BYTES = 1_048_576
LONGEST_RETRY_DELAY = 30.0


class BookingEventsError(Exception):
    """The event was not accepted, or no answer said that it was. Contains neither the secret nor the payload."""

    def __init__(self, message, *, code, retryable, attempts, idempotency_key, status=None, request_id=None,
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
        #: Of an answer with status 422: dicts with message and propertyPath.
        self.violations = list(violations)
        #: How many seconds the service asked to wait.
        self.retry_after = retry_after


class BookingEvents:
    """Sends events until they are accepted, refused for good, or out of attempts or time. Times are in seconds.

    An instance may be used by several threads.
    """

    def __init__(self, base_url, secret, *, attempt_timeout=10.0, total_timeout=60.0, max_attempts=5,
                 first_retry_delay=1.0):
        url = urllib.parse.urlsplit(base_url)
        is_local = url.hostname in ("localhost", "127.0.0.1", "::1")
        if not url.hostname or not (url.scheme == "https" or (url.scheme == "http" and is_local)):
            raise ValueError("base_url must be an https URL, such as https://bookings.example.com.")
        if url.username or url.password or url.query or url.fragment or "/booking-event" in url.path:
            raise ValueError("base_url must end before /booking-event.")
        if not secret or re.search(r"\s|^\.\.?$", secret):
            raise ValueError("secret must be the secret that we gave you, without white space.")
        self._is_https = url.scheme == "https"
        self._host, self._port = url.hostname, url.port
        self._base_path = url.path.rstrip("/")
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

    def _send(self, kind, payload, idempotency_key, dry_run):
        key = str(uuid.uuid4()) if idempotency_key is None else idempotency_key
        # HTTP leaves out spaces around a header's value, and the service quotes.
        if not re.fullmatch(r'(?!".*"$)[!-~](?:[ -~]{0,253}[!-~])?', key):
            raise ValueError("idempotency_key must have 1 to 255 visible ASCII characters, with spaces only inside, "
                             "and no quotes around.")
        # Every attempt must send the same bytes and key: then a repetition counts once.
        body = json.dumps(payload, allow_nan=False).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        if dry_run:
            headers["X-Dry-Run"] = "true"
        deadline = time.monotonic() + self._total_timeout
        attempts = 0
        while True:
            attempts += 1
            answer, fault = self._attempt(kind, body, headers, dry_run, deadline)
            if answer is not None:
                return answer
            delay = self._delay(attempts, fault["retry_after"])
            is_last = attempts >= self._max_attempts or time.monotonic() + delay >= deadline
            if is_last or not fault["retryable"]:
                raise BookingEventsError(**fault, attempts=attempts, idempotency_key=key)
            time.sleep(delay)

    def _delay(self, attempts, retry_after):
        """The random part spreads the retries of many senders. The wait is never shorter than Retry-After."""
        delay = min(self._first_retry_delay * 2 ** (attempts - 1), LONGEST_RETRY_DELAY)
        if retry_after is None:
            return delay * random.uniform(0.5, 1)
        return retry_after + delay * random.random()

    def _attempt(self, kind, body, headers, dry_run, deadline):
        """Returns the body of a 200, or the fault. Redirects are not followed: they would pass on the secret."""
        timeout = max(0.001, min(self._attempt_timeout, deadline - time.monotonic()))
        end = time.monotonic() + timeout
        connection = (
            http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=ssl.create_default_context())
            if self._is_https
            else http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        )
        try:
            path = f"{self._base_path}/booking-event/{kind}/{urllib.parse.quote(self._secret, safe='')}"
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            return self._judge(response, _read(response, end), dry_run)
        except (OSError, http.client.HTTPException) as error:
            # Only the type: a message could contain the path, and thus the secret.
            is_timeout = isinstance(error, TimeoutError)
            reason = type(error).__name__
        finally:
            connection.close()
        code = "timeout" if is_timeout else "network-error"
        return None, _fault(code, f"No answer arrived ({reason}). The event may have been accepted.", True)

    def _judge(self, response, text, dry_run):
        try:
            body = json.loads(text)
        except ValueError:
            body = None
        body = body if isinstance(body, dict) else {}
        status = response.status
        proof = body.get("dryRun") is True if dry_run else isinstance(body.get("eventId"), str)
        if status == 200 and body.get("success") is True and proof:
            return body, None
        about = {"status": status, "request_id": self._hide(response.getheader("X-Request-Id"))}
        if 300 <= status < 400:
            return None, _fault("redirected", "The server redirects to another address. Correct base_url.", False, **about)
        # A 200 without our body may come from a proxy, and says nothing about the event.
        retryable = status >= 500 or status < 400 or status in (408, 429)
        about["retry_after"] = _retry_after(response.getheader("Retry-After"), response.getheader("Date"))
        code, message = body.get("code"), body.get("message")
        if status < 400 or not isinstance(code, str) or not isinstance(message, str):
            message = f"An answer with status {status} arrived that is not the service's. Check base_url and proxies."
            return None, _fault("unexpected-answer", message, retryable, **about)
        about["violations"] = body.get("violationList", [])
        return None, _fault(self._hide(code), self._hide(message), retryable, **about)

    def _hide(self, text):
        """A proxy may repeat the URL. A placeholder in a test, such as "secret", is also part of ordinary words."""
        if text is None or len(self._secret) < 16:
            return text
        return text.replace(self._secret, "[secret]").replace(urllib.parse.quote(self._secret, safe=""), "[secret]")


def _fault(code, message, retryable, *, status=None, request_id=None, violations=(), retry_after=None):
    return {"code": code, "message": message, "retryable": retryable, "status": status, "request_id": request_id,
            "violations": violations, "retry_after": retry_after}


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
            raise TimeoutError
    return b""


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
