// <Shown value={…} />: a value in a table or among facts. A date is told from now, a number has its thousands apart, and a
// text is isolated and clipped. Anything else is shown as it is.
import type { ComponentChildren, VNode } from "preact";
import { formatNumber } from "./numbers.ts";
import { showInvisible, Text } from "./text.tsx";
import { Time } from "./time.tsx";

/** A shorter text needs no room of its own: it is a word, a name or a number. */
const shortLength = 24;

export function Shown({ value }: { value: ComponentChildren }): VNode {
  if (value instanceof Date) return <Time at={value} />;
  if (typeof value === "number") return <>{formatNumber(value)}</>;
  if (typeof value !== "string") return <>{value}</>;
  return value.length > shortLength ? <Text value={value} /> : <bdi>{showInvisible(value)}</bdi>;
}
