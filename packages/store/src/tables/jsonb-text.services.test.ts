import { useTestDatabase } from "@booking-events/harness/test-database";
import { bookingFields, parseJson, toCanonicalJson } from "@booking-events/schema";
import { expect, test } from "vitest";
import { toJsonbText } from "./jsonb-text.ts";

const { pool } = useTestDatabase({ maxConnections: 1 });

async function namesOf(text: string, type: "json" | "jsonb"): Promise<string[]> {
  const { rows } = await pool.query<{ name: string }>(`select ${type}_object_keys($1::${type}) as name`, [text]);
  return rows.map(({ name }) => name);
}

const listed = Object.fromEntries(bookingFields.map(({ name }, index) => [name, `${index}`]));

test("listed fields are in the order in which jsonb keeps them, whatever order they came in", async () => {
  const text = toJsonbText(Object.fromEntries(Object.entries(listed).toReversed()));
  expect(await namesOf(text, "json")).toEqual(await namesOf(text, "jsonb"));
  expect(JSON.parse(text)).toEqual(listed);
});

test("unknown fields, nested values and fields that are missing stay what they are", () => {
  const payload = JSON.parse('{"x":{"b":[1,null],"a":{}},"consumerEmail":null,"__proto__":{"y":1},"7":"\\u2028"}');
  expect(toJsonbText(payload)).toBe(
    '{"7":"\u2028","consumerEmail":null,"x":{"b":[1,null],"a":{}},"__proto__":{"y":1}}',
  );
});

test("numbers keep their decimal values in jsonb, up to the most digits that an envelope may bring", async () => {
  const numbers = "[9007199254740993,-0.12345678901234567890,1E+400,1e131071,-1e-16383,1e300,10.5]";
  const payload = parseJson(`{"numbers":${numbers}}`) as object;
  const { rows } = await pool.query("select $1::jsonb as payload, $1::jsonb = $2::jsonb as is_same", [
    ...[toJsonbText({ ...payload }), `{"numbers":${numbers}}`],
  ]);
  expect(rows[0].is_same).toBe(true);
  expect(toCanonicalJson(rows[0].payload)).toBe(toCanonicalJson(payload));
  for (const beyond of ["1e131072", "1e-16384"])
    await expect(pool.query("select $1::jsonb", [`[${beyond}]`])).rejects.toMatchObject({ code: "22003" });
});
