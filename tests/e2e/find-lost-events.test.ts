import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { expect, test } from "vitest";

const { pool } = useTestDatabase({ maxConnections: 1 });

const eventId = (number: number) => `0193d6c2-7b1a-7000-8000-${String(number).padStart(12, "0")}`;
const lineOf = (number: number) => `2026-11-20T10:00:0${number}.000Z\tacme\t${eventId(number)}\n`;

/** Runs the script with a stand-in for Docker, because the PostgreSQL of the tests comes without psql. */
function findScriptFor(accepted: string) {
  const folder = mkdtempSync(join(tmpdir(), "booking-events-lost-"));
  try {
    writeFileSync(join(folder, "accepted.tsv"), accepted);
    const docker = `#!/bin/sh\ncase "$*" in *" ingest "*) cat ${folder}/accepted.tsv ;; *" psql "*) cat > ${folder}/script ;; esac\n`;
    writeFileSync(join(folder, "docker"), docker, { mode: 0o755 });
    execFileSync("sh", ["deploy/find-lost-events"], { env: { PATH: `${folder}:${process.env["PATH"]}` } });
    const script = readFileSync(join(folder, "script"), "utf8");
    const [, createTable = "", rows = "", questions = ""] =
      /^(create .*;) copy accepted from stdin;\n(.*)^\\\.\n(.*)$/ms.exec(script) ?? [];
    return { createTable, rows: rows.trimEnd().split("\n"), questions };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("lists accepted events that are neither in the log nor dead letters, and reads a log of any size once", async () => {
  const { createTable, rows, questions } = findScriptFor(
    `${[1, 2, 3, 4].map(lineOf).join("")}${lineOf(5).slice(0, -9)}\n`,
  );
  expect(rows).toHaveLength(4);
  await pool.query(createTable);
  for (const row of rows) await pool.query("insert into accepted values ($1, $2, $3)", row.split("\t"));
  await pool.query(
    `insert into booking_events
       (id, partner, kind, reference_kind, reference, booking_key, sequence, outcome, received_at)
     select id, 'acme', 'create', 'trip', 'TRIP-1', '\\x00', 1, 'created', now()
     from (select $1::uuid as id union all select gen_random_uuid() from generate_series(1, 5000)) as events`,
    [eventId(1)],
  );
  await pool.query(
    "insert into dead_letters (event_id, error_code, error, attempts, envelope) values ($1, 'code', '', 5, '')",
    [eventId(3)],
  );

  const [counts, lost] = (await pool.query(questions)) as unknown as { rows: Record<string, unknown>[] }[];
  expect(counts?.rows).toEqual([expect.objectContaining({ accepted: 4 })]);
  expect(lost?.rows.map((row) => row["lost"])).toEqual([eventId(2), eventId(4)]);

  // As if the log were larger than what PostgreSQL may keep in memory.
  await pool.query("analyze booking_events; set work_mem = '64kB'");
  const { rows: plan } = await pool.query(`explain ${questions.split(";")[1]}`);
  expect(plan.map((row) => row["QUERY PLAN"]).join("\n")).not.toContain("SubPlan");
});
