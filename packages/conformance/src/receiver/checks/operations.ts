import { type Check, check, describeAnswer, specified } from "../check.ts";
import { accepted, bodyOf, dryRunPassed, invalid, refused, secretRefused } from "../expectations.ts";
import { bookingForm, bookingJson, create, forEach, formType } from "../payloads.ts";
import type { Receiver } from "../receiver.ts";
import { secretPlaceholder } from "../request.ts";

const operations = ["create", "update", "delete"] as const;
const createPath = `/booking-event/create/${secretPlaceholder}`;

const unknownPaths = [
  ...["/", "/bookings", "/booking-event", "/booking-event/create-all", "/%"],
  ...[`${createPath}//`, `${createPath}/more`, `/${createPath}`],
  ...[
    "cancel/{secret}",
    "Create/{secret}",
    "creat%65/{secret}",
    "creat%E0%A4%A/{secret}",
    "/create/{secret}",
    "create//{secret}",
  ].map((rest) => `/booking-event/${rest.replace("{secret}", secretPlaceholder)}`),
  ...["/Booking-Event", "/booking%2Devent", "/booking-event%2Fcreate"].map(
    (root) => `${root}/create/${secretPlaceholder}`,
  ),
];

export const operationChecks: readonly Check[] = [
  ...operations.flatMap((operation) => [
    specified(
      check(`operations/${operation}-json`, `POST ${operation} accepts application/json and answers 200.`, {
        request: (reference) => ({ operation, body: bookingJson(reference) }),
        expect: accepted,
      }),
    ),
    specified(
      check(`operations/${operation}-form`, `POST ${operation} accepts ${formType} and answers 200.`, {
        request: (reference) => ({ operation, type: formType, body: bookingForm(reference) }),
        expect: accepted,
      }),
    ),
  ]),
  check("operations/delete-unknown-booking", "A delete of a booking that is not known gets 200, not 404.", {
    request: (reference) => ({
      operation: "delete",
      body: JSON.stringify({ consumerPartnerExternalReference: reference }),
    }),
    expect: accepted,
  }),
  {
    source: "ours",
    name: "operations/event-ids",
    demand: "Each accepted event gets an eventId of its own, also if it repeats an earlier one.",
    needsEvents: true,
    run: findRepeatedEventId,
  },
  check(
    "dry-run/valid",
    'X-Dry-Run: true gets 200 and "dryRun": true if nothing is wrong, for each operation.',
    ...operations.map((operation) => ({
      label: operation,
      request: (reference: string) => ({ operation, dryRun: true, body: bookingJson(reference) }),
      expect: dryRunPassed,
    })),
  ),
  {
    ...check(
      "dry-run/header",
      "X-Dry-Run is true, 1 or yes, in any case.",
      ...forEach(["TRUE", "1", "Yes"], (value) => create({ headers: [`X-Dry-Run: ${value}`] }), dryRunPassed),
    ),
    // A receiver that knows only `true` may store the event.
    needsEvents: true,
  },
  {
    ...check(
      "dry-run/refused",
      "X-Dry-Run with anything but true, 1, yes, false, 0, no or nothing gets 400.",
      ...forEach(
        ["on", "2", "true, true"],
        (value) => create({ headers: [`X-Dry-Run: ${value}`] }),
        refused(400, "invalid-dry-run"),
      ),
    ),
    needsEvents: true,
  },
  {
    ...check(
      "dry-run/live",
      "X-Dry-Run that is false, 0, no or empty, in any case, is a live event.",
      ...forEach(["False", "0", "NO", ""], (value) => create({ headers: [`X-Dry-Run: ${value}`] }), accepted),
    ),
    needsEvents: true,
  },
  check(
    "dry-run/invalid",
    "A dry run gets the error that the event would get.",
    { label: "secret", request: create({ dryRun: true, secret: "conformance-nobody" }), expect: secretRefused },
    {
      label: "type",
      request: create({ dryRun: true, type: "text/html" }),
      expect: refused(415, "unsupported-type"),
    },
    {
      label: "payload",
      request: () => ({ dryRun: true, body: "{}" }),
      expect: invalid(["consumerTripPartnerExternalReference"]),
    },
  ),
  check(
    "paths/unknown",
    "Any other path gets 404. Case counts, and so do slashes and percent-encoding.",
    ...forEach(unknownPaths, (path) => create({ path }), refused(404, "no-such-path")),
  ),
  check(
    "paths/query",
    "A query is ignored, and so is a slash after the secret.",
    ...forEach(["?debug=1", "?", "/", "/?debug=1"], (query) => create({ path: `${createPath}${query}` }), accepted),
  ),
  check(
    "paths/method",
    "Any method but POST gets 405, with Allow: POST.",
    ...forEach(
      ["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"],
      (method) => () => ({ method }),
      refused(405, "wrong-method", { allows: "POST" }),
    ),
  ),
];

async function findRepeatedEventId(receiver: Receiver): Promise<string[]> {
  const body = bookingJson(receiver.newReference());
  const headers = ["Idempotency-Key: conformance"];
  const answers = [await receiver.send({ body, headers }), await receiver.send({ body, headers })];
  const ids = answers.map((answer) => bodyOf(answer)["eventId"]);
  const isNew = ids.every((id) => typeof id === "string") && ids[0] !== ids[1];
  return isNew ? [] : answers.map((answer) => describeAnswer(answer, receiver.secret));
}
