#!/bin/sh
# Keeps the private PostgreSQL server of one test run, and surely ends it.
#
# The test process holds the other end of this script's standard input. The kernel closes it when that process
# ends, however it ends, so the wait for it is what stops the server and removes its directory.
#
# Arguments: the directory of PostgreSQL's programs, the directory to keep everything in, the port.
# Standard input: one line with the password of the superuser `postgres`; then nothing until the end.
# Standard output: one line "ready"; or, when the server did not start, its log.

set -u
umask 077
bin=$1
home=$2
port=$3

# A Ctrl-C in the terminal is for the tests; this script still has to clean up after them.
trap '' HUP INT TERM
trap 'cd / && rm -rf -- "$home"' EXIT

give_up() {
    cat -- "$home/log" 2>/dev/null
    exit 1
}

IFS= read -r password || exit 1
printf '%s\n' "$password" >"$home/password"

"$bin/initdb" --pgdata="$home/data" --username=postgres --pwfile="$home/password" --auth=scram-sha-256 \
    --encoding=UTF8 --locale=C --no-sync >"$home/log" 2>&1 || give_up

# Nothing here has to survive a power cut, so nothing waits for the disk. The time zone is an odd one on purpose:
# a query that depends on the server's zone fails here and not at a customer's.
cat >>"$home/data/postgresql.conf" <<CONF
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
max_connections = 300
shared_buffers = 64MB
fsync = off
synchronous_commit = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
autovacuum = off
timezone = 'Asia/Kathmandu'
CONF

"$bin/pg_ctl" start --pgdata="$home/data" --log="$home/log" --wait --timeout=60 --silent >>"$home/log" 2>&1 || give_up
echo ready

IFS= read -r _
"$bin/pg_ctl" stop --pgdata="$home/data" --mode=immediate --wait --timeout=30 --silent >/dev/null 2>&1
