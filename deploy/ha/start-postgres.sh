#!/bin/sh
# Starts one of two PostgreSQL servers, in the container of the official image. $POSTGRES_PRIMARY names the server that
# accepts writes. The other one begins as a copy of it, and follows it.
set -eu

export PGPASSWORD="$POSTGRES_PASSWORD"
# While the image creates the database, no standby can confirm a commit.
export PGOPTIONS="-c synchronous_commit=local"

if [ "$NAME" != "$POSTGRES_PRIMARY" ]; then
  if [ ! -s "$PGDATA/PG_VERSION" ]; then
    mkdir -p "$(dirname "$PGDATA")"
    until
      rm -rf "$PGDATA.unfinished"
      pg_basebackup --host "$POSTGRES_PRIMARY" --username "$POSTGRES_USER" --pgdata "$PGDATA.unfinished" \
        --write-recovery-conf --checkpoint fast
    do
      sleep 2
    done
    rm -rf "$PGDATA"
    mv "$PGDATA.unfinished" "$PGDATA"
  elif [ ! -e "$PGDATA/standby.signal" ]; then
    # Two servers that accept writes would each have bookings that the other lacks.
    echo "$NAME was the primary, and $POSTGRES_PRIMARY is now. Remove the volume of $NAME: it will copy the other." >&2
    exit 1
  fi
fi

# The image's own file lets nobody replicate.
cat > /tmp/pg_hba.conf << 'END'
local all all trust
host all all all scram-sha-256
host replication all all scram-sha-256
END

# A standby confirms commits under its cluster_name.
exec docker-entrypoint.sh "$@" -c hba_file=/tmp/pg_hba.conf -c cluster_name="$NAME" \
  -c synchronous_standby_names="$SYNCHRONOUS_STANDBY_NAMES"
