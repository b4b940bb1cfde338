import { readFileSync } from "node:fs";
import { bookingFields } from "../src/payload/booking-input.ts";
import { type FieldType, maxTextLength } from "../src/payload/field-types.ts";
import { readFieldComments } from "./json-schemas.ts";
import { readings } from "./readings.ts";

export const guideFile = new URL("../../../docs/partner-guide.md", import.meta.url);

const partnersWord = {
  text: "text",
  phone: "text",
  flag: "text",
  language: "text",
  date: "date",
  email: "e-mail address",
} satisfies Record<FieldType, string>;

/** Returns the guide with its table of fields as the schema has them. */
export function withFieldTable(guide: string): string {
  const marked = /(?<=<!-- fields -->\n\n).*?(?=\n\n<!-- \/fields -->)/s;
  if (!marked.test(guide)) throw new Error("The guide does not mark its table of fields.");
  return guide.replace(marked, () => buildFieldTable());
}

export function readGuide(): string {
  return readFileSync(guideFile, "utf8");
}

function buildFieldTable(): string {
  const comments = readFieldComments("payload/booking-input.ts", "BookingInput");
  const rows = bookingFields.map(({ name, type, nullable, maxLength }) => {
    const limit = maxLength === maxTextLength ? "" : `, at most ${maxLength}`;
    const [sentence = ""] = (comments.get(name)?.description ?? "").split(/\.(?= |$)/);
    return [
      `\`${name}\``,
      `${partnersWord[type]}${limit}${nullable ? " or null" : ""}`,
      readings[name] ?? "",
      sentence,
    ];
  });
  return toTable([["Field", "Type", "Read as", "Meaning"], ...rows]);
}

/** With the columns aligned, as the formatter leaves them. */
function toTable([header = [], ...rows]: string[][]): string {
  const widths = header.map((_, column) => Math.max(...[header, ...rows].map((row) => row[column]?.length ?? 0)));
  const toLine = (cells: string[], fill = " ") =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0, fill)).join(" | ")} |`;
  return [
    toLine(header),
    toLine(
      header.map(() => ""),
      "-",
    ),
    ...rows.map((row) => toLine(row)),
  ].join("\n");
}
