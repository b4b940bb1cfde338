<?php

declare(strict_types=1);

/** What was sent was not accepted, or no answer said that it was. Contains neither the secret nor the payload. */
final class BookingEventsError extends RuntimeException
{
    /**
     * @param string $reason a code of the service, or network-error, timeout, redirected, unexpected-answer
     * @param bool $retryable if true, send the same event again later, with the same idempotency key
     * @param string|null $requestId quote it when you ask for support
     * @param list<array{message: string, code: string, propertyPath: list<string>}> $violations of an answer with status 422
     * @param float|null $retryAfter how many seconds the service asked to wait
     */
    public function __construct(
        string $message,
        public readonly string $reason,
        public readonly bool $retryable,
        public readonly int $attempts,
        public readonly ?string $idempotencyKey = null,
        public readonly ?int $status = null,
        public readonly ?string $requestId = null,
        public readonly array $violations = [],
        public readonly ?float $retryAfter = null,
    ) {
        parent::__construct($message);
    }
}

/**
 * Sends booking events until they are accepted, refused for good, or out of attempts or time; asks what became of them;
 * compares bookings. Times are in seconds.
 *
 * Copy this file into your project. It needs PHP 8.1 or newer with the extension curl, and no package.
 *
 *     $bookings = new BookingEvents('https://bookings.example.com', getenv('BOOKING_EVENTS_SECRET'));
 *     $answer = $bookings->create(
 *         ['consumerTripPartnerExternalReference' => 'TRIP-1', 'consumerTripArrivalDate' => new DateTimeImmutable('2027-06-14')],
 *         idempotencyKey: 'TRIP-1/version-1', // Each event needs a key of its own.
 *     );
 *     foreach ($answer['warnings'] ?? [] as $warning) {
 *         error_log(implode('.', $warning['propertyPath']) . ': ' . $warning['message']);
 *     }
 *
 * A date in a payload is sent as 2027-06-14 if it is a midnight, and else with the offset that it has. A text that is not
 * UTF-8 throws a JsonException. The environment variables HTTPS_PROXY and NO_PROXY are honoured.
 */
final class BookingEvents
{
    public const VERSION = '0.1.0';
    private const MAX_ANSWER_BYTES = 16_777_216;
    private const LONGEST_RETRY_DELAY = 30.0;
    /** So few that a slow rate limit lets all of them through before the time-out. */
    private const EVENTS_PER_REQUEST = 100;
    /** Long, because the service reads a batch as slowly as the rate limit demands. */
    private const BATCH_TIMEOUT = 300.0;
    private const HTTP_DATE = 'D, d M Y H:i:s \G\M\T';

    /** Of all instances, by instance. There, var_dump and error trackers do not find them. */
    private static ?WeakMap $secrets = null;
    private readonly string $baseUrl;
    private readonly string $lookupUrl;

    /** @param string|null $lookupUrl the address for questions, if it is another one */
    public function __construct(
        string $baseUrl,
        #[SensitiveParameter] string $secret,
        ?string $lookupUrl = null,
        private readonly float $attemptTimeout = 10.0,
        private readonly float $totalTimeout = 60.0,
        private readonly int $maxAttempts = 5,
        private readonly float $firstRetryDelay = 1.0,
    ) {
        $this->baseUrl = self::checkUrl($baseUrl, 'baseUrl');
        $this->lookupUrl = self::checkUrl($lookupUrl ?? $baseUrl, 'lookupUrl');
        if ($secret === '' || preg_match('/\s|^\.\.?$/', $secret) === 1) {
            throw new InvalidArgumentException('secret must be the secret that we gave you, without white space.');
        }
        self::$secrets ??= new WeakMap();
        self::$secrets[$this] = $secret;
    }

    /** A booking is new. Send the whole booking. */
    public function create(array $booking, ?string $idempotencyKey = null, bool $dryRun = false): array
    {
        return $this->send('create', $booking, $idempotencyKey, $dryRun);
    }

    /** A booking has changed. Send the whole booking: fields that you omit are removed. */
    public function update(array $booking, ?string $idempotencyKey = null, bool $dryRun = false): array
    {
        return $this->send('update', $booking, $idempotencyKey, $dryRun);
    }

    /** A booking is gone. Send its reference. */
    public function delete(array $reference, ?string $idempotencyKey = null, bool $dryRun = false): array
    {
        return $this->send('delete', $reference, $idempotencyKey, $dryRun);
    }

    /**
     * Sends many events. Yields an array for each, in their order, when it is decided: idempotencyKey, status, and eventId
     * and warnings, or code, message and violationList. Throws if the rest cannot be sent now.
     *
     * @param iterable<array{kind: string, payload: array, idempotencyKey?: string}> $events
     */
    public function batch(iterable $events, bool $dryRun = false): Generator
    {
        $number = 0;
        $rest = [];
        foreach ($events as $event) {
            $rest[] = ['idempotencyKey' => self::key($event['idempotencyKey'] ?? null), 'payload' => (object) $event['payload']] + $event;
            if (count($rest) === self::EVENTS_PER_REQUEST) {
                yield from $this->sendPart($rest, $dryRun, $number);
                $rest = [];
            }
        }
        yield from $this->sendPart($rest, $dryRun, $number);
    }

    /** Asks what became of an event. Null: you have no such event, or it has left the log. */
    public function receipt(string $eventId): ?array
    {
        return $this->ask('receipt', '/' . rawurlencode($eventId), 'eventId', 'no-such-event');
    }

    /**
     * Asks how a booking stands. Null: the service has no such booking.
     *
     * @param string|null $fields such as 'consumerPhone,agentEmail', or 'all': the answer has what the service reads of
     *     them, in readings
     */
    public function booking(string $reference, string $referenceKind = 'trip', ?string $fields = null): ?array
    {
        $query = http_build_query(['reference' => $reference, 'referenceKind' => $referenceKind, 'fields' => $fields]);
        return $this->ask('booking', "?$query", 'state', 'no-such-booking');
    }

    /** Asks what the service received from you in the last 48 hours, or on a day in UTC, and what it refused. */
    public function activity(?string $day = null): array
    {
        return $this->ask('activity', $day === null ? '' : '?day=' . rawurlencode($day), null, null);
    }

    /**
     * Compares all bookings that are active at your end with the service's. Yields each difference, and returns the
     * counts. The list is sent while it is read. Nothing is retried.
     *
     * @param iterable<array{reference: string, referenceKind?: string, digest?: string}> $bookings
     */
    public function reconcile(iterable $bookings, bool $allowEmpty = false, float $timeout = 600.0): Generator
    {
        $lines = (static fn () => yield from $bookings)();
        $unsent = '';
        $read = static function ($curl, $file, int $length) use (&$unsent, $lines): string {
            for (; strlen($unsent) < $length && $lines->valid(); $lines->next()) {
                $unsent .= self::json($lines->current()) . "\n";
            }
            $part = substr($unsent, 0, $length);
            $unsent = substr($unsent, $length);
            return $part;
        };
        $headers = ['Content-Type: application/x-ndjson', 'Transfer-Encoding: chunked', 'Expect:'];
        $options = [CURLOPT_POST => true, CURLOPT_READFUNCTION => $read];
        $query = $allowEmpty ? '?allowEmpty=true' : '';
        [$curl, $answer] = $this->open([$this->lookupUrl, 'reconcile', $query], $headers, $timeout, $options);
        $multi = curl_multi_init();
        curl_multi_add_handle($multi, $curl);
        try {
            do {
                curl_multi_exec($multi, $isRunning);
                $isGood = curl_getinfo($curl, CURLINFO_RESPONSE_CODE) === 200;
                while ($isGood && ($end = strpos($answer->text, "\n")) !== false) {
                    $line = self::parse(substr($answer->text, 0, $end));
                    $answer->text = substr($answer->text, $end + 1);
                    if (isset($line['summary'])) {
                        return $line['summary'];
                    }
                    if (!isset($line['result'])) {
                        break 2;
                    }
                    yield $line;
                }
                if ($isRunning) {
                    curl_multi_select($multi, 1.0);
                }
            } while ($isRunning);
            $number = curl_multi_info_read($multi)['result'] ?? CURLE_PARTIAL_FILE;
            $fault = $isGood || $number !== CURLE_OK
                ? self::noAnswer($number ?: CURLE_PARTIAL_FILE, 'The answer is not complete.')
                : $this->judge($curl, $answer, static fn () => null)['fault'];
        } finally {
            curl_multi_remove_handle($multi, $curl);
        }
        throw new BookingEventsError(...$fault, attempts: 1);
    }

    /** The digest of a booking's content, as booking and reconcile use it: of the payload of the last create or update. */
    public static function digest(array $payload): string
    {
        // The service stores U+FFFD in place of U+0000.
        $store = static fn (array $found): string => $found[1] === 'u0000' ? "\u{FFFD}" : $found[0];
        return hash('sha256', preg_replace_callback('/\\\\(u0000|.)/', $store, self::json((object) $payload)));
    }

    private function send(string $kind, array $payload, ?string $idempotencyKey, bool $dryRun): array
    {
        $key = self::key($idempotencyKey);
        // Without "Expect:", curl would wait for "100 Continue" before it sends a large body.
        $headers = ['Content-Type: application/json', "Idempotency-Key: $key", 'Expect:', ...($dryRun ? ['X-Dry-Run: true'] : [])];
        // Every attempt must send the same bytes and key: then a repetition counts once.
        $options = [CURLOPT_POSTFIELDS => self::json((object) $payload)];
        $accept = static function (string $text) use ($dryRun): ?array {
            $body = self::parse($text);
            $isProof = $dryRun ? ($body['dryRun'] ?? null) === true : is_string($body['eventId'] ?? null);
            return ($body['success'] ?? null) === true && $isProof ? $body : null;
        };
        return $this->call([$this->baseUrl, $kind, ''], $headers, $options, $accept, $key);
    }

    private function sendPart(array $rest, bool $dryRun, int &$number): Generator
    {
        $headers = ['Content-Type: application/x-ndjson', 'Expect:', ...($dryRun ? ['X-Dry-Run: true'] : [])];
        $accept = static fn (string $text): array => array_map(self::parse(...), explode("\n", trim($text)));
        for ($attempts = 1, $deadline = self::now() + self::BATCH_TIMEOUT; $rest !== []; $attempts++) {
            $body = implode('', array_map(static fn (array $event): string => self::json($event) . "\n", $rest));
            $url = [$this->baseUrl, 'batch', ''];
            $timeout = $deadline - self::now();
            $result = $this->attempt($url, $headers, [CURLOPT_POSTFIELDS => $body], $timeout, $accept, true);
            $answers = $result['answer'] ?? [];
            foreach ($answers as $index => $answer) {
                $status = $answer['status'] ?? 0;
                // A 403 that ends the answer early is about the secret, not about the event.
                $isEnded = $status === 403 && $index === array_key_last($answers) && count($rest) > 1;
                if ($rest === [] || $isEnded || self::isRetryable($status)) {
                    $result['fault'] = $this->faultOfLine($answer);
                    break;
                }
                yield ['line' => ++$number, 'idempotencyKey' => array_shift($rest)['idempotencyKey']] + $answer;
                [$attempts, $deadline] = [1, self::now() + self::BATCH_TIMEOUT];
            }
            if ($rest !== []) {
                $this->wait($result['fault'] ?? $this->faultOfLine([]), $attempts, $deadline, null);
            }
        }
    }

    /** Of the line at which the answer to a batch ends: it and those after it are to be sent again. */
    private function faultOfLine(array $answer): array
    {
        return [
            'reason' => $this->hide($answer['code'] ?? 'queue-unavailable'),
            'message' => $this->hide($answer['message'] ?? 'The rest cannot be stored now.'),
            'retryable' => true,
            'status' => $answer['status'] ?? null,
            'retryAfter' => $answer['retryAfter'] ?? null,
        ];
    }

    private function ask(string $question, string $more, ?string $member, ?string $reasonOfNothing): ?array
    {
        $accept = static function (string $text) use ($member): ?array {
            $body = self::parse($text);
            return $body !== [] && ($member === null || isset($body[$member])) ? $body : null;
        };
        try {
            return $this->call([$this->lookupUrl, $question, $more], [], [], $accept, null);
        } catch (BookingEventsError $error) {
            return $error->reason === $reasonOfNothing ? null : throw $error;
        }
    }

    private function call(array $url, array $headers, array $options, Closure $accept, ?string $key): array
    {
        $deadline = self::now() + $this->totalTimeout;
        for ($attempts = 1; ; $attempts++) {
            $timeout = min($this->attemptTimeout, $deadline - self::now());
            $result = $this->attempt($url, $headers, $options, $timeout, $accept, $key !== null);
            if (isset($result['answer'])) {
                return $result['answer'];
            }
            $this->wait($result['fault'], $attempts, $deadline, $key);
        }
    }

    /** The random part spreads the retries of many senders. The wait is never shorter than Retry-After. */
    private function wait(array $fault, int $attempts, float $deadline, ?string $key): void
    {
        $delay = min($this->firstRetryDelay * 2 ** ($attempts - 1), self::LONGEST_RETRY_DELAY);
        $random = random_int(0, 1_000_000) / 1e6;
        $after = $fault['retryAfter'] ?? null;
        $delay = $after === null ? $delay * (0.5 + $random / 2) : $after + $delay * $random;
        if (!$fault['retryable'] || $attempts >= $this->maxAttempts || self::now() + $delay >= $deadline) {
            throw new BookingEventsError(...$fault, attempts: $attempts, idempotencyKey: $key);
        }
        usleep((int) ($delay * 1e6));
    }

    /** @return array{answer?: array, fault?: array} */
    private function attempt(array $url, array $headers, array $options, float $timeout, Closure $accept, bool $isEvent): array
    {
        [$curl, $answer] = $this->open($url, $headers, $timeout, $options);
        curl_exec($curl);
        $number = curl_errno($curl);
        return $number === CURLE_OK || strlen($answer->text) > self::MAX_ANSWER_BYTES
            ? $this->judge($curl, $answer, $accept)
            : ['fault' => self::noAnswer($number, $isEvent ? 'The event may have been accepted.' : '')];
    }

    /** Redirects are not followed: they would pass on the secret. */
    private function open(array $url, array $headers, float $timeout, array $options): array
    {
        [$base, $kind, $more] = $url;
        $answer = new class {
            public string $text = '';
            public array $headers = [];
        };
        $curl = curl_init("$base/booking-event/$kind/" . rawurlencode(self::$secrets[$this]) . $more);
        curl_setopt_array($curl, $options + [
            CURLOPT_HTTPHEADER => $headers,
            CURLOPT_FOLLOWLOCATION => false,
            CURLOPT_TIMEOUT_MS => max(1, (int) ($timeout * 1_000)),
            CURLOPT_NOSIGNAL => true,
            CURLOPT_HEADERFUNCTION => static function ($curl, string $line) use ($answer): int {
                [$name, $value] = explode(':', $line, 2) + [1 => ''];
                $answer->headers[strtolower($name)] = trim($value);
                return strlen($line);
            },
            CURLOPT_WRITEFUNCTION => static function ($curl, string $part) use ($answer): int {
                $answer->text .= $part;
                // Any other number ends the transfer.
                return strlen($answer->text) <= self::MAX_ANSWER_BYTES ? strlen($part) : -1;
            },
        ]);
        return [$curl, $answer];
    }

    private function judge(CurlHandle $curl, object $answer, Closure $accept): array
    {
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        $accepted = $status === 200 ? $accept($answer->text) : null;
        if ($accepted !== null) {
            return ['answer' => $accepted];
        }
        $fault = ['status' => $status, 'requestId' => $this->hide($answer->headers['x-request-id'] ?? null)];
        if ($status >= 300 && $status < 400) {
            $message = 'The server redirects to another address. Correct baseUrl.';
            return ['fault' => $fault + ['reason' => 'redirected', 'message' => $message, 'retryable' => false]];
        }
        // A 200 without our body may come from a proxy, and says nothing about the event.
        $fault['retryable'] = $status === 200 || self::isRetryable($status);
        $fault['retryAfter'] = self::retryAfter($answer->headers['retry-after'] ?? null, $answer->headers['date'] ?? null);
        $body = self::parse($this->hide($answer->text));
        if ($status < 400 || !is_string($body['code'] ?? null) || !is_string($body['message'] ?? null)) {
            $message = "An answer with status $status arrived that is not the service's. Check baseUrl and proxies.";
            return ['fault' => $fault + ['reason' => 'unexpected-answer', 'message' => $message]];
        }
        $violations = is_array($body['violationList'] ?? null) ? $body['violationList'] : [];
        return ['fault' => $fault + ['reason' => $body['code'], 'message' => $body['message'], 'violations' => $violations]];
    }

    private static function noAnswer(int $number, string $more): array
    {
        return [
            'reason' => $number === CURLE_OPERATION_TIMEDOUT ? 'timeout' : 'network-error',
            // Not curl's own message, which may repeat parts of the URL or of the answer.
            'message' => trim('No answer arrived (' . curl_strerror($number) . "). $more"),
            'retryable' => true,
        ];
    }

    private static function isRetryable(int $status): bool
    {
        return $status !== 200 && ($status >= 500 || $status < 400 || in_array($status, [408, 429], true));
    }

    /** A proxy may repeat the URL. A placeholder in a test, such as "secret", is also part of ordinary words. */
    private function hide(?string $text): ?string
    {
        $secret = self::$secrets[$this];
        return $text === null || strlen($secret) < 16
            ? $text
            : str_replace([$secret, rawurlencode($secret)], '[secret]', $text);
    }

    private static function checkUrl(string $text, string $name): string
    {
        $url = parse_url($text) ?: [];
        $isLocal = in_array($url['host'] ?? '', ['localhost', '127.0.0.1', '[::1]'], true);
        $isProtected = ($url['scheme'] ?? '') === 'https' || (($url['scheme'] ?? '') === 'http' && $isLocal);
        if (!isset($url['host']) || !$isProtected) {
            throw new InvalidArgumentException("$name must be an https URL, such as https://bookings.example.com.");
        }
        $hasMore = array_intersect_key($url, ['user' => 1, 'pass' => 1, 'query' => 1, 'fragment' => 1]) !== [];
        if ($hasMore || str_contains($url['path'] ?? '', '/booking-event')) {
            throw new InvalidArgumentException("$name must end before /booking-event.");
        }
        return rtrim($text, '/');
    }

    private static function key(?string $given): string
    {
        $key = $given ?? bin2hex(random_bytes(16));
        // HTTP leaves out spaces around a header's value, and the service quotes.
        if (preg_match('/\A(?!".*"\z)[!-~](?:[ -~]{0,253}[!-~])?\z/', $key) !== 1) {
            $rule = '1 to 255 visible ASCII characters, with spaces only inside, and no quotes around';
            throw new InvalidArgumentException("idempotencyKey must have $rule.");
        }
        return $key;
    }

    private static function parse(string $text): array
    {
        $value = json_decode($text, true);
        return is_array($value) ? $value : [];
    }

    /** Canonical JSON (RFC 8785), with all digits: what is sent, and what the digest is of. */
    private static function json(mixed $value): string
    {
        if ($value instanceof DateTimeInterface) {
            $value = $value->format($value->format('His') === '000000' ? 'Y-m-d' : DATE_ATOM);
        }
        if ($value instanceof JsonSerializable) {
            return self::json($value->jsonSerialize());
        }
        if (is_array($value) && array_is_list($value)) {
            return '[' . implode(',', array_map(self::json(...), $value)) . ']';
        }
        if (is_array($value) || (is_object($value) && !$value instanceof BackedEnum)) {
            $members = [];
            foreach (is_array($value) ? $value : get_object_vars($value) as $name => $member) {
                // By UTF-16 code units: surrogate pairs, F0 to F4 in UTF-8, stand before U+E000. U+0000 becomes U+FFFD.
                $order = strtr((string) $name, ["\0" => "\xFF\xBF\xBD", "\xEE" => "\xFE", "\xEF" => "\xFF"]);
                $members["k$order"] = self::json((string) $name) . ':' . self::json($member);
            }
            ksort($members, SORT_STRING);
            return '{' . implode(',', $members) . '}';
        }
        $flags = JSON_UNESCAPED_UNICODE | JSON_UNESCAPED_SLASHES | JSON_UNESCAPED_LINE_TERMINATORS;
        $text = json_encode($value, JSON_THROW_ON_ERROR | $flags);
        return is_int($value) || is_float($value) ? self::number($text) : $text;
    }

    private static function number(string $written): string
    {
        preg_match('/^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i', $written, $found);
        [, $sign, $whole, $fraction, $exponent] = $found + ['', '', '', '', '0'];
        $digits = ltrim($whole . $fraction, '0');
        $point = strlen($digits) - strlen($fraction) + (int) $exponent;
        $digits = rtrim($digits, '0');
        if ($digits === '') {
            return '0';
        }
        if ($point > 0 && $point <= 21) {
            $rest = substr($digits, $point);
            return $sign . str_pad(substr($digits, 0, $point), $point, '0') . ($rest === '' ? '' : ".$rest");
        }
        if ($point > -6 && $point <= 0) {
            return "{$sign}0." . str_repeat('0', -$point) . $digits;
        }
        $rest = substr($digits, 1);
        return $sign . $digits[0] . ($rest === '' ? '' : ".$rest") . sprintf('e%+d', $point - 1);
    }

    /** Seconds, or a date, which is compared with the server's clock, because ours may be wrong. */
    private static function retryAfter(?string $header, ?string $date): ?float
    {
        if ($header === null) {
            return null;
        }
        if (preg_match('/\A[0-9]{1,9}\z/', $header) === 1) {
            return (float) $header;
        }
        $utc = new DateTimeZone('UTC');
        $until = DateTimeImmutable::createFromFormat(self::HTTP_DATE, $header, $utc);
        $now = DateTimeImmutable::createFromFormat(self::HTTP_DATE, $date ?? '', $utc) ?: new DateTimeImmutable();
        return $until === false ? null : (float) max(0, $until->getTimestamp() - $now->getTimestamp());
    }

    /** A clock that nobody sets. */
    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
