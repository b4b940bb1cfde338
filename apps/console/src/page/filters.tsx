// <Filters query={query} fields={[{ name: "partner", label: "Partner" }, { name: "outcome", label: "Outcome", choices: ["created", …] }]} />
// A form whose fields stand in the URL of the page. `query` is the request's: the fields show what it says.
import type { VNode } from "preact";
import { useView } from "./view.ts";

export interface FilterField {
  /** Of the parameter in the URL. */
  name: string;
  label: string;
  /** Without them, it is a text. */
  choices?: readonly string[];
  /** The choice that counts if the URL has none. Without it, that is any. */
  initial?: string;
  /** What a text looks like, such as "1h or 02:00". */
  example?: string;
}

interface FiltersProps {
  query: URLSearchParams;
  fields: readonly FilterField[];
}

export function Filters({ query, fields }: FiltersProps): VNode {
  const { path } = useView();
  const chosenOf = ({ name, initial = "" }: FilterField) => query.get(name) || initial;
  const isFiltered = fields.some((field) => chosenOf(field) !== (field.initial ?? ""));
  return (
    <form class="filters" action={path}>
      {fields.map((field) => (
        <label for={`filter-${field.name}`}>
          {field.label}
          <Field field={field} value={chosenOf(field)} />
        </label>
      ))}
      <button type="submit" class="button">
        Filter
      </button>
      {isFiltered && (
        <a class="button button-quiet" href={path}>
          Clear
        </a>
      )}
    </form>
  );
}

function Field({ field, value }: { field: FilterField; value: string }): VNode {
  const { name, choices, initial, example } = field;
  const id = `filter-${name}`;
  if (choices === undefined) return <input id={id} name={name} value={value} placeholder={example} maxLength={1_000} />;
  return (
    <select id={id} name={name}>
      {initial === undefined && <option value="">any</option>}
      {choices.map((choice) => (
        <option value={choice} selected={choice === value}>
          {choice}
        </option>
      ))}
    </select>
  );
}
