import { describe, expect, test } from "vitest";
import { canonicalContent } from "./canonical-content.ts";
import { check, type Evidence, type ViolationKind } from "./check.ts";
import type { Attempt, Post } from "./post-events.ts";
import type { DatabaseContent } from "./read-database.ts";

const hourMs = 3_600_000;
const contentA = { consumerTripPartnerExternalReference: "T1", note: "A" };
const contentB = { consumerTripPartnerExternalReference: "T1", note: "B" };

/** A create, and an update with a key, whose first request was refused but queued. */
function goodRun(): Evidence & { posts: [Post, Post]; database: DatabaseContent } {
  const create = post({ kind: "create", payload: contentA }, [
    request(0, 10, { result: "acknowledged", eventId: "e1" }),
  ]);
  const update = post({ kind: "update", payload: contentB, idempotencyKey: "k1" }, [
    request(20, 30, { result: "unreachable" }),
    request(40, 50, { result: "refused" }),
    request(60, 70, { result: "acknowledged", eventId: "e3" }),
  ]);
  const logged = { partner: "acme", reference: "T1", idempotencyKey: null, secretId: "s1", warnings: [] };
  const updated = { ...logged, kind: "update" as const, content: canonicalContent(contentB), idempotencyKey: "k1" };
  const booking = { bookingId: "b1", partner: "acme", reference: "T1" };
  const database: DatabaseContent = {
    log: [
      { ...logged, id: "e1", kind: "create", content: canonicalContent(contentA), sequence: 1, outcome: "created" },
      { ...updated, id: "e2", sequence: 2, outcome: "updated" },
      { ...updated, id: "e3", sequence: 3, outcome: "duplicate" },
    ],
    bookings: [{ partner: "acme", reference: "T1", state: "active", sequence: 2, content: canonicalContent(contentB) }],
    changes: [
      { id: 1, ...booking, revision: 1, change: "created", eventId: "e1" },
      { id: 2, ...booking, revision: 2, change: "updated", eventId: "e2" },
    ],
    deadLetters: [],
  };
  return { posts: [create, update], database, followedChangeIds: [1, 2], duplicateWindowMs: 72 * hourMs };
}

function post(intent: Partial<Post>, attempts: Attempt[]): Post {
  const payload = { consumerTripPartnerExternalReference: "T1" };
  const any = {
    partner: "acme",
    kind: "create",
    reference: "T1",
    payload,
    idempotencyKey: null,
  } as const;
  return { ...any, ...intent, attempts };
}

function request(sentAtMs: number, endedAtMs: number, end: Attempt["end"]): Attempt {
  return { sentAtMs, endedAtMs, end };
}

test("in a run in which every promise was kept, nothing is found", () => {
  const { violations, tally } = check(goodRun());
  expect(violations).toEqual([]);
  expect(tally).toEqual({
    attempted: 2,
    requests: 4,
    acknowledged: 2,
    givenUp: 0,
    applied: 3,
    unacknowledged: 1,
    duplicated: 1,
    superseded: 0,
    bookings: 1,
    changes: 2,
  });
});

type Run = ReturnType<typeof goodRun>;

describe("is found", () => {
  test.each<[what: string, kind: ViolationKind, spoil: (run: Run) => void]>([
    ["an acknowledged event that is not in the log", "lost", ({ database }) => database.log.pop()],
    [
      "an event that nobody sent",
      "unexpected",
      ({ database }) => database.log.push({ ...at(database.log, 0), id: "e4", sequence: 4, outcome: "unchanged" }),
    ],
    [
      "one event more than requests without an answer",
      "unexpected",
      ({ database }) => database.log.push({ ...at(database.log, 1), id: "e4", sequence: 4, outcome: "duplicate" }),
    ],
    [
      "an event that no connection could have brought",
      "unexpected",
      ({ posts: [, update] }) => update.attempts.splice(1, 1),
    ],
    [
      "an event that is different in the log from what was sent",
      "unexpected",
      ({ posts: [create] }) => {
        create.payload = { ...contentA, note: "C" };
      },
    ],
    [
      "one receipt for two posts",
      "unexpected",
      ({ posts: [create] }) => create.attempts.push({ ...at(create.attempts, 0) }),
    ],
    [
      "an answer that no partner should get",
      "unexpected",
      ({ posts: [create] }) => create.attempts.unshift(request(0, 1, { result: "unexpected", what: "answer 400" })),
    ],
    [
      "a log that is not in the order of receipt",
      "out of order",
      ({ database }) => {
        at(database.log, 0).sequence = 9;
      },
    ],
    [
      "a booking in another state",
      "wrong state",
      ({ database }) => {
        at(database.bookings, 0).state = "deleted";
      },
    ],
    [
      "a booking with other content",
      "wrong state",
      ({ database }) => {
        at(database.bookings, 0).content = canonicalContent(contentA);
      },
    ],
    ["a booking that is not there", "wrong state", ({ database }) => database.bookings.pop()],
    [
      "a booking without an event",
      "wrong state",
      ({ database }) => database.bookings.push({ ...at(database.bookings, 0), reference: "T2" }),
    ],
    [
      "a key that counted twice",
      "wrong state",
      ({ database }) => {
        at(database.log, 2).outcome = "updated";
      },
    ],
    [
      "a warning of a reused key that was not reused",
      "wrong state",
      ({ database }) => {
        at(database.log, 1).warnings = ["key-reused"];
      },
    ],
    [
      "a warning that the fold does not give",
      "wrong state",
      ({ database }) => {
        at(database.log, 1).warnings = ["booking-unknown"];
      },
    ],
    ["a change that is not in the feed", "wrong feed", ({ database }) => database.changes.pop()],
    [
      "a change that a reader of the feed missed",
      "wrong feed",
      (run) => {
        run.followedChangeIds = [2];
      },
    ],
    [
      "a gap in the ids of the feed",
      "wrong feed",
      (run) => {
        at(run.database.changes, 1).id = 3;
        run.followedChangeIds = [1, 3];
      },
    ],
    [
      "a revision that is left out",
      "wrong feed",
      ({ database }) => {
        at(database.changes, 1).revision = 3;
      },
    ],
    ["a dead letter", "dead", ({ database }) => database.deadLetters.push({ eventId: "e1", errorCode: "STALLED" })],
  ])("%s: %s", (_, kind, spoil) => {
    const run = goodRun();
    spoil(run);
    expect(check(run).violations.map((violation) => violation.kind)).toContain(kind);
  });
});

describe("an event that was given up, and received after a newer one was acknowledged", () => {
  const contentC = { ...contentA, note: "C" };
  const elsewhere = { consumerTripPartnerExternalReference: "T2" };

  /** The refused request for the update, which ended at 50, is received last. It was sent at 20 or later. */
  function overtakenRun() {
    const { posts, ...run } = goodRun();
    const newer = post({ kind: "update", payload: contentC }, [
      request(80, 90, { result: "acknowledged", eventId: "e4" }),
    ]);
    const last = post({ reference: "T2", payload: elsewhere }, [
      request(100, 110, { result: "acknowledged", eventId: "e5" }),
    ]);
    const [refused] = run.database.log.splice(1, 1);
    if (refused === undefined) throw new Error("The good run has no event that was refused.");
    const logged = {
      partner: "acme",
      reference: "T1",
      idempotencyKey: null,
      secretId: "s1",
      warnings: [],
      outcome: "any",
    };
    run.database.log.push(
      { ...logged, id: "e4", kind: "update", content: canonicalContent(contentC), sequence: 4 },
      { ...logged, id: "e5", kind: "create", reference: "T2", content: canonicalContent(elsewhere), sequence: 5 },
      { ...refused, sequence: 6 },
    );
    return { ...run, posts: [...posts, newer, last], update: posts[1], newer, last, refused: at(run.database.log, 4) };
  }

  const overtaken = (run: Evidence) => check(run).violations.filter(({ kind }) => kind === "overtaken");

  test("is found", () => {
    expect(overtaken(overtakenRun())).toEqual([
      { kind: "overtaken", what: expect.stringMatching(/^e2 \(6\), update/) },
    ]);
  });

  test("is not found when its sender still waited for it when the newer one was sent", () => {
    const run = overtakenRun();
    run.update.attempts[1] = request(40, 81, { result: "unanswered" });
    expect(overtaken(run)).toEqual([]);
  });

  test("is not found when it may have been sent late, because the sender was frozen", () => {
    const run = overtakenRun();
    run.update.attempts[1] = { ...request(40, 50, { result: "unanswered" }), givenUpAtMs: 81 };
    expect(overtaken(run)).toEqual([]);
  });

  test("is not found when another request for it, not yet given up, may have brought it", () => {
    const run = overtakenRun();
    run.posts.push({ ...run.update, attempts: [request(45, 95, { result: "unanswered" })] });
    expect(overtaken(run)).toEqual([]);
  });

  test("is found when there are more such events than requests that were not yet given up", () => {
    const run = overtakenRun();
    run.posts.push({ ...run.update, attempts: [request(45, 95, { result: "unanswered" })] });
    run.database.log.push({ ...run.refused, id: "e7", sequence: 7 });
    expect(overtaken(run)).toHaveLength(1);
  });

  test("is not found when it may have been received before the newer one was acknowledged", () => {
    const run = overtakenRun();
    // No event before it in the log was sent after that.
    run.last.attempts = [request(85, 110, { result: "acknowledged", eventId: "e5" })];
    expect(overtaken(run)).toEqual([]);
  });

  test("is not found when only its own retry was acknowledged", () => {
    const run = overtakenRun();
    run.newer.payload = contentB;
    run.newer.idempotencyKey = run.update.idempotencyKey;
    expect(overtaken(run)).toEqual([]);
  });

  test("is not found when the newer one is of another booking", () => {
    const run = overtakenRun();
    run.newer.reference = "T3";
    expect(overtaken(run)).toEqual([]);
  });
});

describe("of an erased booking", () => {
  const marker = `erased-${"0".repeat(32)}`;

  /** As the good run, with everything that `eraseBooking` does. */
  function erasedRun() {
    const { database, ...run } = goodRun();
    const erase = { reference: marker, content: null };
    database.log = database.log.map((event) => ({ ...event, ...erase, idempotencyKey: null }));
    database.bookings = database.bookings.map((booking) => ({ ...booking, ...erase, state: "deleted" }));
    database.changes.push({ ...at(database.changes, 1), id: 3, revision: 3, change: "erased" });
    database.changes = database.changes.map((change) => ({ ...change, reference: null }));
    return { ...run, database, followedChangeIds: [1, 2, 3], erased: new Set(["acme T1"]) };
  }

  test("nothing is found when nothing is left", () => {
    expect(check(erasedRun()).violations).toEqual([]);
  });

  type ErasedRun = ReturnType<typeof erasedRun>;

  test.each<[what: string, kind: ViolationKind, spoil: (run: ErasedRun) => void]>([
    ["that nobody has erased", "unexpected", (run) => run.erased.clear()],
    ["an event that is lost", "lost", ({ database }) => database.log.pop()],
    [
      "one event more than requests without an answer",
      "unexpected",
      ({ database }) => database.log.push({ ...at(database.log, 1), id: "e4", sequence: 4 }),
    ],
    [
      "content in the log",
      "unexpected",
      ({ database }) => {
        at(database.log, 0).content = canonicalContent(contentA);
      },
    ],
    [
      "an event in the log",
      "guest stays",
      ({ database }) => {
        at(database.log, 0).reference = "T1";
      },
    ],
    [
      "the row",
      "guest stays",
      ({ database }) => {
        at(database.bookings, 0).reference = "T1";
      },
    ],
    [
      "an earlier change",
      "guest stays",
      ({ database }) => {
        at(database.changes, 0).reference = "T1";
      },
    ],
    [
      "a revision that is left out",
      "wrong feed",
      ({ database }) => {
        at(database.changes, 2).revision = 4;
      },
    ],
  ])("%s is found: %s", (_, kind, spoil) => {
    const run = erasedRun();
    spoil(run);
    expect(check(run).violations.map((violation) => violation.kind)).toContain(kind);
  });
});

function at<Item>(items: Item[], index: number): Item {
  const item = items[index];
  if (item === undefined) throw new RangeError(`There is no item ${index}.`);
  return item;
}
