#!/bin/sh
# Without an argument, dumps the database that the PG… variables name: now, and every 24 hours. Keeps dumps for BACKUP_KEEP_DAYS days, and
# longer if there is no newer one. A dump contains guests' data, so only its owner can read it. Prometheus' node exporter
# reads from backup.prom when the last dump was made.
#   check [FILE]     restores a dump, by default the newest, into a database beside it, says what it holds, and drops it
#   restore [FILE]   restores it into the database itself, which must be empty
set -eu
umask 077

day_seconds=86400
retry_seconds=300

dump() {
  dump="$BACKUP_FOLDER/booking-events-$(date -u +%Y-%m-%dT%H-%M-%SZ).dump"
  # Left behind when a dump was interrupted.
  rm -f "$BACKUP_FOLDER"/*.unfinished
  pg_dump --format=custom --file="$dump.unfinished" &&
    pg_restore --list "$dump.unfinished" >/dev/null &&
    mv "$dump.unfinished" "$dump" &&
    echo "Wrote $dump" &&
    find "$BACKUP_FOLDER" -name 'booking-events-*.dump' -mtime "+$BACKUP_KEEP_DAYS" -delete &&
    report_success
}

report_success() {
  report="$BACKUP_FOLDER/backup.prom"
  {
    echo "# HELP booking_events_backup_success_timestamp_seconds When the last dump of PostgreSQL was made."
    echo "# TYPE booking_events_backup_success_timestamp_seconds gauge"
    echo "booking_events_backup_success_timestamp_seconds $(date +%s)"
  } >"$report.unfinished" && chmod 644 "$report.unfinished" && mv "$report.unfinished" "$report"
}

# Of two servers, the one that takes writes.
export PGTARGETSESSIONATTRS=read-write

# In one transaction: it is complete, or nothing has changed.
restore() {
  file=${2:-$(find "$BACKUP_FOLDER" -name 'booking-events-*.dump' | sort | tail -n 1)}
  [ -n "$file" ] || { echo "There is no dump in $BACKUP_FOLDER." >&2; exit 1; }
  echo "Restoring $file"
  pg_restore --dbname="$1" --single-transaction --exit-on-error "$file"
}

describe() {
  psql --dbname="$1" --quiet --command "select
      (select count(*) from bookings) as bookings,
      (select count(*) from booking_events) as events,
      (select count(*) from dead_letters) as dead_letters,
      (select max(received_at) from booking_events) as newest_event"
}

case ${1:-} in
  check)
    scratch=${PGDATABASE}_check
    dropdb --if-exists --force "$scratch"
    createdb "$scratch"
    trap 'dropdb --force "$scratch"' EXIT
    trap 'exit 143' INT TERM
    restore "$scratch" "${2:-}"
    echo "The dump:" && describe "$scratch"
    echo "The database:" && describe "$PGDATABASE"
    exit
    ;;
  restore)
    tables=$(psql --no-align --tuples-only --command "select count(*) from pg_tables where schemaname = 'public'")
    [ "$tables" = 0 ] || { echo "$PGDATABASE is not empty. A dump is restored into an empty database only." >&2; exit 1; }
    restore "$PGDATABASE" "${2:-}"
    describe "$PGDATABASE"
    exit
    ;;
esac

while true; do
  if dump; then
    sleep "$day_seconds"
  else
    echo "The dump failed. Next attempt in $retry_seconds seconds." >&2
    sleep "$retry_seconds"
  fi
done
