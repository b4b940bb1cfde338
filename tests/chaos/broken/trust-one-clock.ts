import { ClockComparison } from "@booking-events/runtime";
import { runWorker } from "@booking-events/worker/run-worker";
import pg from "pg";

/** The mistake: what is old is removed by PostgreSQL's clock alone. */
ClockComparison.prototype.findProblem = () => null;

const client = new pg.Client({ connectionString: process.env["DATABASE_URL"] });
client.on("error", () => {});
// A worker that is started before the database is migrated leaves this to the next one.
const believePostgres = `do $$ begin
  if to_regprocedure('agreed_time(timestamptz)') is not null then
    execute 'create or replace function agreed_time(at timestamptz) returns timestamptz language sql return now()';
  end if;
end $$`;
await client
  .connect()
  .then(() => client.query(believePostgres))
  .then(
    () => client.end(),
    () => {},
  );

await runWorker(process.env);
