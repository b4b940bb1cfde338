#!/bin/sh
# Dumps the database that the PG… variables name: now, and every 24 hours. Keeps dumps for BACKUP_KEEP_DAYS days, and
# longer if there is no newer one. A dump contains guests' data, so only its owner can read it. Prometheus' node exporter
# reads from backup.prom when the last dump was made.
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

while true; do
  if dump; then
    sleep "$day_seconds"
  else
    echo "The dump failed. Next attempt in $retry_seconds seconds." >&2
    sleep "$retry_seconds"
  fi
done
