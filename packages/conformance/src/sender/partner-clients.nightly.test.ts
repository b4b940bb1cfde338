import { execFile, spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { playReceiver } from "./play-receiver.ts";
import { scenarios } from "./scenarios.ts";

const folder = fileURLToPath(new URL("../../../../docs/clients/", import.meta.url));

/** Sends an event, of one booking two, and prints the code of the error, if there is one. */
const python = `
import sys
from booking_events import BookingEvents, BookingEventsError
base_url, secret, reference = sys.argv[1:]
try:
    client = BookingEvents(base_url, secret, attempt_timeout=5)
    client.create({"consumerTripPartnerExternalReference": reference})
    if reference == "accepted":
        client.update({"consumerTripPartnerExternalReference": reference, "consumerTripArrivalDate": "2027-06-14"})
except BookingEventsError as error:
    print(error.code)
`;
const php = `
require 'BookingEvents.php';
[, $baseUrl, $secret, $reference] = $argv;
try {
    $client = new BookingEvents($baseUrl, $secret, attemptTimeout: 5);
    $booking = ['consumerTripPartnerExternalReference' => $reference];
    $client->create($booking);
    if ($reference === 'accepted') {
        $client->update($booking + ['consumerTripArrivalDate' => '2027-06-14']);
    }
} catch (BookingEventsError $error) {
    echo $error->reason, "\\n";
}
`;

const languages = [
  { name: "Python", program: "python3", args: ["-c", python], needs: ["-c", "import ssl"] },
  { name: "PHP", program: "php", args: ["-r", php, "--"], needs: ["-r", "exit(extension_loaded('curl') ? 0 : 1);"] },
];

for (const { name, program, args, needs } of languages) {
  const isHere = spawnSync(program, needs).status === 0;
  const title = isHere ? name : `${name} (${program} is missing)`;

  test.skipIf(!isHere)(`the client that partners copy passes every scenario: ${title}`, async () => {
    const { url, secret, report } = await playReceiver({ port: 0, speed: 4 });
    const calls = scenarios.map(({ name }) => {
      return promisify(execFile)(program, [...args, url, secret, name], { cwd: folder });
    });
    const errors = await Promise.all(calls);

    const { scenarios: results, habits, refused, warnings } = await report;
    expect([...results, ...habits].filter(({ outcome }) => outcome !== "passed")).toEqual([]);
    expect([refused, warnings]).toEqual([[], []]);
    expect(errors.flatMap(({ stdout }) => stdout.split("\n").filter(Boolean)).sort()).toEqual([
      ...["invalid-data", "invalid-secret", "not-an-object"],
    ]);
  });
}
