<?php

declare(strict_types=1);

require 'BookingEvents.php';

function native(mixed $value): mixed
{
    if (is_array($value)) {
        foreach ($value as $name => $member) {
            switch ((string) $name) {
                case '$object':
                    return new stdClass();
                case '$day':
                case '$time':
                    return new DateTimeImmutable($member);
                case '$integer':
                    return strlen($member) < 19 ? (int) $member : (float) $member;
                case '$float':
                    return (float) $member;
            }
            $value[$name] = native($member);
        }
    }
    return $value;
}

function collect(Generator $generator): array
{
    $items = [];
    foreach ($generator as $item) {
        $items[] = $item;
    }
    return ['items' => $items, 'end' => $generator->getReturn()];
}

function perform(BookingEvents $client, object $call): mixed
{
    $payload = native($call->payload);
    return match ($call->method) {
        'digest' => BookingEvents::digest($payload),
        'receipt' => $client->receipt($payload),
        'booking' => $client->booking($payload, 'consumer', $call->fields ?: null),
        'activity' => $client->activity($payload),
        'reconcile' => collect($client->reconcile((fn () => yield from $payload)(), allowEmpty: $call->allowEmpty)),
        'batch' => collect($client->batch((fn () => yield from $payload)())),
        default => $client->{$call->method}($payload, idempotencyKey: $call->key, dryRun: $call->dryRun),
    };
}

while (($line = fgets(STDIN)) !== false) {
    $call = (object) json_decode($line, true);
    $shown = [];
    try {
        $client = new BookingEvents($call->baseUrl, $call->secret, lookupUrl: $call->lookupUrl, maxAttempts: $call->maxAttempts,
            firstRetryDelay: $call->firstRetryDelayS, attemptTimeout: $call->attemptTimeoutS, totalTimeout: $call->totalTimeoutS);
        $shown = [print_r($client, true), var_export($client, true), json_encode((array) $client)];
        $result = ['answer' => perform($client, $call)];
    } catch (BookingEventsError $error) {
        $result = [
            'message' => $error->getMessage(),
            'code' => $error->reason,
            'retryable' => $error->retryable,
            'attempts' => $error->attempts,
            'key' => $error->idempotencyKey,
            'status' => $error->status,
            'requestId' => $error->requestId,
            'violations' => $error->violations,
            'retryAfterS' => $error->retryAfter,
        ];
        $shown[] = (string) $error;
        $shown[] = print_r($error->getTrace(), true);
    } catch (InvalidArgumentException | JsonException $error) {
        $result = ['invalid' => $error->getMessage()];
        $shown[] = (string) $error;
    }
    echo json_encode(['result' => $result, 'shown' => $shown]), "\n";
}
