import type { VNode } from "preact";
import { Text } from "../page/text.tsx";

/** A value of a payload: a string without its quotes, anything else as JSON, with the digits that were sent. */
export function JsonValue({ text }: { text: string }): VNode {
  return <Text value={text.startsWith('"') ? String(JSON.parse(text)) : text} />;
}
