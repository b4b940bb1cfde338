import { describeCount, type StoryEvent } from "@booking-events/operations";
import { parseJson } from "@booking-events/schema";
import type { VNode } from "preact";
import { Text } from "../page/text.tsx";

const maxNames = 8;
const maxShown = 200;

/** The names of what an event has changed and, if they are revealed, the values before and after. */
export function ChangedFields({
  changed,
  isRevealed,
}: {
  changed: NonNullable<StoryEvent["changed"]>;
  isRevealed: boolean;
}): VNode | null {
  const { names, values } = changed;
  if (names === null) return <p class="faint">What it changed is not known: a content has been removed.</p>;
  if (names.length === 0) return null;
  if (isRevealed && values !== null) return <Values names={names} values={values} />;
  if (names.length <= maxNames)
    return (
      <p>
        Changed: <Names names={names} />
      </p>
    );
  return (
    <details>
      <summary>Changed {names.length} fields</summary>
      <Names names={names} />
    </details>
  );
}

/** Names of fields, which the partner has chosen. */
export function Names({ names }: { names: readonly string[] }): VNode {
  return (
    <span class="names">
      {names.slice(0, maxShown).map((name) => (
        <code>
          <Text value={name} limit={60} />
        </code>
      ))}
      {names.length > maxShown && <span class="faint">and {names.length - maxShown} more</span>}
    </span>
  );
}

function Values({ names, values }: { names: readonly string[]; values: string }): VNode {
  const changes = parseJson(values) as Record<string, { before: unknown; after: unknown }>;
  return (
    <details open={names.length <= maxNames}>
      <summary>Changed {describeCount(names.length, "field")}</summary>
      <dl class="values">
        {names.slice(0, maxShown).map((name) => (
          <div>
            <dt>
              <Text value={name} limit={60} />
            </dt>
            <dd>
              <Change {...(changes[name] ?? { before: null, after: null })} />
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}

/** With the digits that were sent. */
function Change({ before, after }: { before: unknown; after: unknown }): VNode {
  return (
    <>
      {before !== null && (
        <del>
          <JsonValue text={JSON.stringify(before)} />
        </del>
      )}{" "}
      {after !== null && (
        <ins>
          <JsonValue text={JSON.stringify(after)} />
        </ins>
      )}
    </>
  );
}

/** A value of a payload: a string without its quotes, anything else as JSON, with the digits that were sent. */
export function JsonValue({ text }: { text: string }): VNode {
  return <Text value={text.startsWith('"') ? String(JSON.parse(text)) : text} />;
}

/** What repeats another event, has expired or has been erased takes no part in what the booking holds. */
export function countsInFold({ applied }: StoryEvent): boolean {
  return applied !== null && applied.duplicateOf === null && !["expired", "erased"].includes(applied.outcome);
}
