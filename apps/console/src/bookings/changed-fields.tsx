import type { StoryEvent } from "@booking-events/operations";
import { parseJson } from "@booking-events/schema";
import type { VNode } from "preact";
import { Text } from "../page/text.tsx";
import { JsonValue } from "./json-value.tsx";

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
      <Names names={names.slice(0, maxShown)} />
    </details>
  );
}

function Names({ names }: { names: readonly string[] }): VNode {
  return (
    <span class="names">
      {names.map((name) => (
        <code>
          <Text value={name} limit={60} />
        </code>
      ))}
    </span>
  );
}

function Values({ names, values }: { names: readonly string[]; values: string }): VNode {
  const texts = splitValues(values);
  return (
    <details open={names.length <= maxNames}>
      <summary>Changed {names.length === 1 ? "1 field" : `${names.length} fields`}</summary>
      <dl class="values">
        {names.slice(0, maxShown).map((name) => {
          const { before, after } = texts.get(name) ?? { before: null, after: null };
          return (
            <div>
              <dt>
                <Text value={name} limit={60} />
              </dt>
              <dd>
                {before !== null && (
                  <del>
                    <JsonValue text={before} />
                  </del>
                )}{" "}
                {after !== null && (
                  <ins>
                    <JsonValue text={after} />
                  </ins>
                )}
              </dd>
            </div>
          );
        })}
      </dl>
    </details>
  );
}

/** @returns JSON texts, with the digits that were sent, by the fields' names */
function splitValues(values: string): Map<string, { before: string | null; after: string | null }> {
  const parsed = parseJson(values) as Record<string, { before: unknown; after: unknown }>;
  const toText = (value: unknown) => (value === null ? null : JSON.stringify(value));
  return new Map(
    Object.entries(parsed).map(([name, { before, after }]) => [name, { before: toText(before), after: toText(after) }]),
  );
}
