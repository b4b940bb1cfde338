import type { QueueRecord } from "@booking-events/queue";
import type { DatabaseExamination } from "@booking-events/store";
import { findOtherDatabase } from "../services/require-same-database.ts";
import { type Check, ok, problem, unknown } from "./check.ts";
import { checkClock, checkDisk, checkEncryption, isLoopback } from "./check-host.ts";

/**
 * @param urls one for each host. The examination is of the one that takes writes
 * @param record null: Redis does not answer
 */
export function checkDatabase(examination: DatabaseExamination, urls: URL[], record: QueueRecord | null): Check[] {
  const url = urls.find((one) => !isLoopback(one)) ?? (urls[0] as URL);
  return [
    ...checkDurability(examination),
    checkPrimary(examination),
    ...checkStandbys(examination),
    checkMigrations(examination),
    ...checkRecord(examination, record),
    ...checkCollations(examination),
    checkVacuum(examination),
    checkLoggedRows(examination),
    checkLoggedParameters(examination),
    checkPooling(examination),
    checkEncryption(
      "PostgreSQL",
      url,
      /^(require|verify-ca|verify-full)$/.test(url.searchParams.get("sslmode") ?? ""),
      "Add sslmode=verify-full to DATABASE_URL.",
    ),
    checkClock("PostgreSQL", examination.clockAheadMs),
    checkDisk("PostgreSQL", url, examination.folder),
  ];
}

/** For an administrator, since DATABASE_URL is of a role with fewer rights. */
function alterSystem(setting: string, value: string): string {
  return `psql --command "alter system set ${setting} = ${value}" --command "select pg_reload_conf()"`;
}

function checkDurability({ durabilityProblems }: DatabaseExamination): Check[] {
  const subject = {
    name: "PostgreSQL keeps events",
    why: "Events leave Redis once PostgreSQL has committed them.",
  };
  if (durabilityProblems.length === 0) return [ok(subject, "fsync, full_page_writes, logged tables")];
  return durabilityProblems.map((sentence) => {
    const [, setting, value] = /Set: (\w+) = (\w+)\.$/.exec(sentence) ?? [];
    const [, statement] = /Run: (.+)\.$/.exec(sentence) ?? [];
    const remedy =
      setting !== undefined && value !== undefined ? alterSystem(setting, value) : `psql --command "${statement}"`;
    return problem(subject, sentence, remedy);
  });
}

function checkPrimary({ isStandby, isReadOnly }: DatabaseExamination): Check {
  const subject = { name: "PostgreSQL takes writes", why: "Workers wait for a primary, and events with them." };
  if (isStandby) return problem(subject, "it is a read-only standby", "Point DATABASE_URL at the primary.");
  return isReadOnly
    ? problem(
        subject,
        "default_transaction_read_only is on",
        "Find out why, such as a full disk. Then switch it off where it was set: for the role, the database or the server.",
      )
    : ok(subject, "it is a primary");
}

function checkStandbys({ settings, standbyProblems }: DatabaseExamination): Check[] {
  const { synchronousCommit, synchronousStandbys } = settings;
  const subject = {
    name: "Standbys have what was committed",
    why: "A standby that takes over without it has lost events.",
  };
  if (standbyProblems.length > 0)
    return standbyProblems.map((sentence) =>
      problem(subject, sentence, 'See "A standby of PostgreSQL" in docs/operations/grow.md.'),
    );
  if (synchronousStandbys === "") return [ok(subject, "there are no synchronous standbys")];
  // Where it is off, the transactions of workers switch it on.
  return [
    /^(on|off|remote_apply)$/.test(synchronousCommit)
      ? ok(subject, `synchronous_commit is ${synchronousCommit}`)
      : problem(subject, `synchronous_commit is ${synchronousCommit}`, alterSystem("synchronous_commit", "on")),
  ];
}

function checkMigrations({ migrations: { last, missing, unknown: newer, different } }: DatabaseExamination): Check {
  const subject = { name: "The database is migrated", why: "Workers of another release do not start, or wait." };
  if (different.length > 0) return problem(subject, `made by other files: ${different.join(", ")}`, "See ops migrate.");
  if (newer.length > 0) return problem(subject, `newer: ${newer.join(", ")}`, "Run the release that migrated it.");
  return missing.length > 0
    ? problem(subject, `missing: ${missing.join(", ")}`, "ops migrate")
    : ok(subject, last ?? "none");
}

function checkRecord({ identity }: DatabaseExamination, record: QueueRecord | null): Check[] {
  if (identity === null || record === null) return [];
  const subject = {
    name: "The queue feeds this database",
    why: "Two databases would take each other's events, and an empty one in the place of the right one would miss all.",
  };
  const sentence = findOtherDatabase(record, identity);
  if (sentence === null) return [ok(subject, record.database === null ? "it has fed none yet" : identity.id)];
  return [problem(subject, sentence, 'See "Another database" in docs/runbook.md.')];
}

function checkCollations({ collationProblems }: DatabaseExamination): Check[] {
  const subject = {
    name: "PostgreSQL sorts text as its indexes do",
    why: "After a change of the C library or of ICU, an index finds rows no more, and lets two with one key in.",
  };
  if (collationProblems.length === 0) return [ok(subject, "no collation has changed")];
  return collationProblems.map(({ sentence, statements }) =>
    problem(subject, sentence, `psql ${statements.map((statement) => `--command '${statement}'`).join(" ")}`),
  );
}

function checkVacuum({ settings: { autovacuum, trackCounts } }: DatabaseExamination): Check {
  const subject = {
    name: "PostgreSQL cleans its tables up",
    why: "Otherwise tables grow, plans get slow, and at last PostgreSQL takes no more transactions.",
  };
  if (autovacuum !== "on") return problem(subject, `autovacuum is ${autovacuum}`, alterSystem("autovacuum", "on"));
  return trackCounts === "on"
    ? ok(subject, "autovacuum is on")
    : problem(subject, `track_counts is ${trackCounts}`, alterSystem("track_counts", "on"));
}

function checkLoggedRows({ settings: { errorVerbosity } }: DatabaseExamination): Check {
  const subject = {
    name: "PostgreSQL logs no rows",
    why: "In DETAIL, it logs the values of a row that it refuses: guests' data.",
  };
  return errorVerbosity === "terse"
    ? ok(subject, "log_error_verbosity is terse")
    : problem(subject, `log_error_verbosity is ${errorVerbosity}`, alterSystem("log_error_verbosity", "terse"));
}

function checkLoggedParameters({ settings }: DatabaseExamination): Check {
  const subject = {
    name: "PostgreSQL logs no parameters",
    why: "The parameters of our statements are guests' data.",
  };
  const { statement, minDurationMs, minDurationSampleMs, transactionSampleRate } = settings;
  const logged = [
    ...(/^(mod|all)$/.test(statement) ? [`log_statement is ${statement}`] : []),
    ...(minDurationMs >= 0 ? [`log_min_duration_statement is ${minDurationMs}`] : []),
    ...(minDurationSampleMs >= 0 ? [`log_min_duration_sample is ${minDurationSampleMs}`] : []),
    ...(transactionSampleRate > 0 ? [`log_transaction_sample_rate is ${transactionSampleRate}`] : []),
  ];
  if (settings.parameterMaxLengthOnError !== 0)
    return problem(
      subject,
      "log_parameter_max_length_on_error is not 0",
      alterSystem("log_parameter_max_length_on_error", "0"),
    );
  if (logged.length > 0 && settings.parameterMaxLength !== 0)
    return problem(
      subject,
      `${logged.join(", ")}, and log_parameter_max_length is not 0`,
      alterSystem("log_parameter_max_length", "0"),
    );
  return ok(subject, logged.length === 0 ? "it logs no statements" : "log_parameter_max_length is 0");
}

function checkPooling({ isPooledByTransaction }: DatabaseExamination): Check {
  const subject = {
    name: "A pooler does not break transactions",
    why: "Statement mode does. Transaction mode works; readers of the feed need a direct connection to be woken up.",
  };
  if (isPooledByTransaction === null)
    return unknown(subject, "another transaction could not begin", "With PgBouncer, set pool_mode = transaction.");
  return ok(subject, isPooledByTransaction ? "PgBouncer in transaction mode" : "none, or one in session mode");
}
