import { expect, test } from "vitest";
import { findWrongRestores, type Restore } from "./check-restores.ts";

type Evidence = Parameters<typeof findWrongRestores>[0];
type Logged = Evidence["log"][number];

const logged = { partner: "acme", idempotencyKey: null, warnings: [], outcome: "any" };

function event(atMs: number, reference: string, content: string, more: Partial<Logged> = {}): Logged {
  const id = `${reference} at ${atMs}`;
  return { ...logged, id, reference, kind: "update", content, sequence: atMs * 1_000, secretId: "s1", ...more };
}

function restoring(atMs: number, reference: string, content: string, more: Partial<Logged> = {}): Logged {
  return event(atMs, reference, content, { secretId: null, idempotencyKey: "restore-1-to-10", ...more });
}

const planned = { partner: "acme", referenceKind: "trip", action: "update", reason: null };

const leftNew = { ...planned, reference: "NEW", action: null, reason: "new" };

/** Of three bookings, one was changed, one was deleted, and one has come since. */
function goodRun(): { log: Logged[]; restores: Restore[]; erased: Set<string>; duplicateWindowMs: number } {
  return {
    log: [
      event(1, "CHANGED", "right"),
      event(2, "DELETED", "right"),
      event(11, "CHANGED", "wrong"),
      event(12, "DELETED", "gone", { kind: "delete" }),
      event(13, "NEW", "new"),
      restoring(20, "CHANGED", "right"),
      restoring(20, "DELETED", "right"),
    ],
    restores: [
      {
        ...{ partner: "acme", references: ["CHANGED", "DELETED", "NEW", "NEVER"], atMs: 10, deleteNew: false },
        done: {
          readAtMs: 20,
          bookings: [{ ...planned, reference: "CHANGED" }, { ...planned, reference: "DELETED" }, leftNew],
        },
      },
    ],
    erased: new Set(),
    duplicateWindowMs: 3_600_000,
  };
}

test("a restore that did what it should is right, also of a command that was killed", () => {
  expect(findWrongRestores(goodRun())).toEqual([]);
  const killed = goodRun();
  for (const restore of killed.restores) restore.done = null;
  expect(findWrongRestores(killed)).toEqual([]);
});

test.each<[what: string, spoil: (run: ReturnType<typeof goodRun>) => void, found: string]>([
  [
    "what a booking held at another time",
    ({ log }) => log.splice(5, 1, restoring(20, "CHANGED", "wrong")),
    "CHANGED at 20 restores acme CHANGED by update wrong, not update right",
  ],
  [
    "a delete instead of an update",
    ({ log }) => log.splice(6, 1, restoring(20, "DELETED", "gone", { kind: "delete" })),
    "DELETED at 20 restores acme DELETED by delete, not update right",
  ],
  [
    "a booking that nobody wanted",
    ({ log }) => log.push(restoring(20, "OTHER", "x")),
    "OTHER at 20: no operator has restored acme OTHER",
  ],
  [
    "another time than was wanted",
    ({ log }) => log.splice(5, 1, restoring(20, "CHANGED", "right", { idempotencyKey: "restore-1-to-9" })),
    "CHANGED at 20: no operator has restored acme CHANGED",
  ],
  [
    "the deletion of a new booking that should stay",
    ({ log }) => log.push(restoring(20, "NEW", "gone", { kind: "delete" })),
    "NEW at 20 deletes acme NEW, which is new",
  ],
  [
    "a booking whose event was lost",
    ({ log }) => log.splice(5, 1),
    "acme CHANGED was wrong, and was not restored to right: the command said update",
  ],
  [
    "a booking that was taken for the same",
    ({ log, restores }) => {
      log.splice(5, 1);
      for (const restore of restores)
        restore.done = { readAtMs: 20, bookings: [{ ...planned, reference: "DELETED" }, leftNew] };
    },
    "acme CHANGED was wrong, and was not restored to right: the command said nothing",
  ],
  [
    "a new booking that should go",
    ({ restores }) => {
      for (const restore of restores) restore.deleteNew = true;
    },
    "acme NEW was new, and was not restored to gone: the command said new",
  ],
])("is found: %s", (_what, spoil, found) => {
  const run = goodRun();
  spoil(run);
  expect(findWrongRestores(run)).toEqual([found]);
});

test("what the partner sent meanwhile, waited in the queue or was erased is no mistake", () => {
  const run = goodRun();
  run.log.splice(5, 2, event(21, "CHANGED", "newer"));
  const waiting = { ...planned, reference: "CHANGED", action: null, reason: "in-queue" };
  for (const restore of run.restores) restore.done = { readAtMs: 20, bookings: [waiting, leftNew] };
  run.erased = new Set(["acme DELETED"]);
  expect(findWrongRestores(run)).toEqual([]);
});

test("while the queue has events of a reference, its trip and its consumer are left alone", () => {
  const run = goodRun();
  run.log.push(event(13, "consumer CHANGED", "new"));
  run.log.splice(5, 1);
  const leave = (reason: string) => {
    const left = { ...planned, reference: "CHANGED", action: null, reason };
    for (const restore of run.restores)
      restore.done = { readAtMs: 20, bookings: [left, { ...planned, reference: "DELETED" }, leftNew] };
    return findWrongRestores(run);
  };
  expect(leave("in-queue")).toEqual([]);
  expect(leave("same")).toHaveLength(2);
});
