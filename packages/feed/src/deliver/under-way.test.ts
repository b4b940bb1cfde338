import fc from "fast-check";
import { expect, test } from "vitest";
import { UnderWay } from "./under-way.ts";

const steps = fc.array(
  fc.oneof(
    fc.record({ kind: fc.constant("add" as const) }),
    fc.record({ kind: fc.constant("skip" as const), by: fc.integer({ min: 1, max: 5 }) }),
    fc.record({ kind: fc.constant("finish" as const), which: fc.nat(1_000) }),
  ),
  { maxLength: 300 },
);

test("everything up to the place is done, and the place is as far as that goes", () => {
  fc.assert(
    fc.property(steps, (sequence) => {
      const underWay = new UnderWay(0);
      const marks = [{ place: 0, isDone: true, finish: () => {} }];
      const end = () => marks.at(-1)?.place ?? 0;
      for (const step of sequence) {
        if (step.kind === "add") marks.push({ place: end() + 1, isDone: false, finish: underWay.add(end() + 1) });
        if (step.kind === "skip") {
          underWay.skipTo(end() + step.by);
          marks.push({ place: end() + step.by, isDone: true, finish: () => {} });
        }
        if (step.kind === "finish") {
          const mark = marks[step.which % marks.length];
          mark?.finish();
          if (mark !== undefined) mark.isDone = true;
        }
        const firstOpen = marks.findIndex(({ isDone }) => !isDone);
        expect(underWay.doneUpTo).toBe(firstOpen === -1 ? end() : marks[firstOpen - 1]?.place);
        expect(underWay.readUpTo).toBe(end());
        // What is done is not kept.
        expect(underWay.size).toBe(firstOpen === -1 ? 0 : marks.length - firstOpen);
      }
    }),
  );
});
