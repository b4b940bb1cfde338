<?php

declare(strict_types=1);

/**
 * The event was not accepted, or no answer said that it was. Contains neither the secret nor the payload.
 */
final class BookingEventsError extends RuntimeException
{
    /**
     * @param string $reason a code of the service, or network-error, timeout, redirected, unexpected-answer
     * @param bool $retryable if true, send the same event again later, with the same idempotency key
     * @param string|null $requestId quote it when you ask for support
     * @param list<array{message: string, propertyPath: list<string>}> $violations of an answer with status 422
     * @param float|null $retryAfter how many seconds the service asked to wait
     */
    public function __construct(
        string $message,
        public readonly string $reason,
        public readonly bool $retryable,
        public readonly int $attempts,
        public readonly string $idempotencyKey,
        public readonly ?int $status = null,
        public readonly ?string $requestId = null,
        public readonly array $violations = [],
        public readonly ?float $retryAfter = null,
    ) {
        parent::__construct($message);
    }
}

/**
 * Sends booking events until they are accepted, refused for good, or out of attempts or time. Times are in seconds.
 *
 * Copy this file into your project. It needs PHP 8.2 or newer with the extension curl, and no package.
 *
 *     $bookings = new BookingEvents('https://bookings.example.com', getenv('BOOKING_EVENTS_SECRET'));
 *     $answer = $bookings->create(
 *         ['consumerTripPartnerExternalReference' => 'TRIP-1', 'consumerTripArrivalDate' => '2027-06-14'],
 *         idempotencyKey: 'TRIP-1/version-1', // Each event needs a key of its own.
 *     );
 *     foreach ($answer['warnings'] ?? [] as $warning) {
 *         error_log(implode('.', $warning['propertyPath']) . ': ' . $warning['message']);
 *     }
 *
 * Write dates as format('Y-m-d'), and times only with a zone, as format(DATE_ATOM).
 */
final class BookingEvents
{
    private const MAX_ANSWER_BYTES = 1_048_576;
    private const LONGEST_RETRY_DELAY = 30.0;
    private const HTTP_DATE = 'D, d M Y H:i:s \G\M\T';

    private readonly string $baseUrl;
    /** Hides the secret from var_dump and from error trackers. */
    private readonly SensitiveParameterValue $secret;

    public function __construct(
        string $baseUrl,
        #[SensitiveParameter] string $secret,
        private readonly float $attemptTimeout = 10.0,
        private readonly float $totalTimeout = 60.0,
        private readonly int $maxAttempts = 5,
        private readonly float $firstRetryDelay = 1.0,
    ) {
        $url = parse_url($baseUrl) ?: [];
        $isLocal = in_array($url['host'] ?? '', ['localhost', '127.0.0.1', '[::1]'], true);
        $isProtected = ($url['scheme'] ?? '') === 'https' || (($url['scheme'] ?? '') === 'http' && $isLocal);
        if (!isset($url['host']) || !$isProtected) {
            throw new InvalidArgumentException('baseUrl must be an https URL, such as https://bookings.example.com.');
        }
        $hasMore = array_intersect_key($url, ['user' => 1, 'pass' => 1, 'query' => 1, 'fragment' => 1]) !== [];
        if ($hasMore || str_contains($url['path'] ?? '', '/booking-event')) {
            throw new InvalidArgumentException('baseUrl must end before /booking-event.');
        }
        if ($secret === '' || preg_match('/\s|^\.\.?$/', $secret) === 1) {
            throw new InvalidArgumentException('secret must be the secret that we gave you, without white space.');
        }
        $this->baseUrl = rtrim($baseUrl, '/');
        $this->secret = new SensitiveParameterValue($secret);
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

    private function send(string $kind, array $payload, ?string $idempotencyKey, bool $dryRun): array
    {
        $key = $idempotencyKey ?? bin2hex(random_bytes(16));
        // HTTP leaves out spaces around a header's value, and the service quotes.
        if (preg_match('/\A(?!".*"\z)[!-~](?:[ -~]{0,253}[!-~])?\z/', $key) !== 1) {
            $rule = '1 to 255 visible ASCII characters, with spaces only inside, and no quotes around';
            throw new InvalidArgumentException("idempotencyKey must have $rule.");
        }
        // Every attempt must send the same bytes and key: then a repetition counts once.
        $body = json_encode((object) $payload, JSON_THROW_ON_ERROR | JSON_UNESCAPED_UNICODE);
        // Without "Expect:", curl would wait for "100 Continue" before it sends a large body.
        $headers = ['Content-Type: application/json', "Idempotency-Key: $key", 'Expect:'];
        if ($dryRun) {
            $headers[] = 'X-Dry-Run: true';
        }
        $deadline = self::now() + $this->totalTimeout;
        for ($attempts = 1; ; $attempts++) {
            $result = $this->attempt($kind, $body, $headers, $dryRun, $deadline - self::now());
            if (!isset($result['fault'])) {
                return $result['body'];
            }
            $fault = $result['fault'];
            $delay = $this->delay($attempts, $fault['retryAfter'] ?? null);
            $isLast = $attempts >= $this->maxAttempts || self::now() + $delay >= $deadline;
            if ($isLast || !$fault['retryable']) {
                throw new BookingEventsError(...$fault, attempts: $attempts, idempotencyKey: $key);
            }
            usleep((int) ($delay * 1e6));
        }
    }

    /** The random part spreads the retries of many senders. The wait is never shorter than Retry-After. */
    private function delay(int $attempts, ?float $retryAfter): float
    {
        $delay = min($this->firstRetryDelay * 2 ** ($attempts - 1), self::LONGEST_RETRY_DELAY);
        $random = random_int(0, 1_000_000) / 1e6;
        return $retryAfter === null ? $delay * (0.5 + $random / 2) : $retryAfter + $delay * $random;
    }

    /** Redirects are not followed: they would pass on the secret. */
    private function attempt(string $kind, string $body, array $headers, bool $dryRun, float $remaining): array
    {
        $answer = '';
        $answerHeaders = [];
        $curl = curl_init("{$this->baseUrl}/booking-event/$kind/" . rawurlencode($this->secret->getValue()));
        curl_setopt_array($curl, [
            CURLOPT_POST => true,
            CURLOPT_POSTFIELDS => $body,
            CURLOPT_HTTPHEADER => $headers,
            CURLOPT_FOLLOWLOCATION => false,
            CURLOPT_TIMEOUT_MS => max(1, (int) (min($this->attemptTimeout, $remaining) * 1_000)),
            CURLOPT_NOSIGNAL => true,
            CURLOPT_HEADERFUNCTION => static function ($curl, string $line) use (&$answerHeaders): int {
                [$name, $value] = explode(':', $line, 2) + [1 => ''];
                $answerHeaders[strtolower($name)] = trim($value);
                return strlen($line);
            },
            CURLOPT_WRITEFUNCTION => static function ($curl, string $part) use (&$answer): int {
                $answer .= $part;
                // Any other number ends the transfer.
                return strlen($answer) <= self::MAX_ANSWER_BYTES ? strlen($part) : -1;
            },
        ]);
        curl_exec($curl);
        $errorNumber = curl_errno($curl);
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        if ($errorNumber !== 0 && strlen($answer) <= self::MAX_ANSWER_BYTES) {
            return ['fault' => [
                'reason' => $errorNumber === CURLE_OPERATION_TIMEDOUT ? 'timeout' : 'network-error',
                // Not curl's own message, which may repeat parts of the URL or of the answer.
                'message' => 'No answer arrived (' . curl_strerror($errorNumber) . '). The event may have been accepted.',
                'retryable' => true,
            ]];
        }
        return $this->judge($status, $answerHeaders, $answer, $dryRun);
    }

    private function judge(int $status, array $headers, string $text, bool $dryRun): array
    {
        $body = json_decode($text, true);
        $body = is_array($body) ? $body : [];
        $proof = $dryRun ? ($body['dryRun'] ?? null) === true : is_string($body['eventId'] ?? null);
        if ($status === 200 && ($body['success'] ?? null) === true && $proof) {
            return ['body' => $body];
        }
        $fault = ['status' => $status, 'requestId' => $this->hide($headers['x-request-id'] ?? null)];
        if ($status >= 300 && $status < 400) {
            $message = 'The server redirects to another address. Correct baseUrl.';
            return ['fault' => $fault + ['reason' => 'redirected', 'message' => $message, 'retryable' => false]];
        }
        // A 200 without our body may come from a proxy, and says nothing about the event.
        $fault['retryable'] = $status >= 500 || $status < 400 || in_array($status, [408, 429], true);
        $fault['retryAfter'] = self::retryAfter($headers['retry-after'] ?? null, $headers['date'] ?? null);
        if ($status < 400 || !is_string($body['code'] ?? null) || !is_string($body['message'] ?? null)) {
            $message = "An answer with status $status arrived that is not the service's. Check baseUrl and proxies.";
            return ['fault' => $fault + ['reason' => 'unexpected-answer', 'message' => $message]];
        }
        $violations = is_array($body['violationList'] ?? null) ? $body['violationList'] : [];
        $reason = $this->hide($body['code']);
        $message = $this->hide($body['message']);
        return ['fault' => $fault + ['reason' => $reason, 'message' => $message, 'violations' => $violations]];
    }

    /** A proxy may repeat the URL. A placeholder in a test, such as "secret", is also part of ordinary words. */
    private function hide(?string $text): ?string
    {
        $secret = $this->secret->getValue();
        return $text === null || strlen($secret) < 16
            ? $text
            : str_replace([$secret, rawurlencode($secret)], '[secret]', $text);
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
