#!/bin/sh
# Makes sure that PostgreSQL's server programs are there, because the tests start a private server from them.
#
# Debian and Ubuntu: installs them by apt-get when it may (as root, or by sudo without a password).
# Elsewhere it says what to install, and fails. It never skips.

set -eu

# The places where tests/it/harness/cluster.rs looks. A `postgres` of its own means that initdb lies beside it.
found() {
    for directory in "$(pg_config --bindir 2>/dev/null || true)" /usr/lib/postgresql/*/bin /usr/pgsql-*/bin \
        /opt/homebrew/opt/postgresql@*/bin /usr/local/opt/postgresql@*/bin; do
        if [ -x "$directory/initdb" ] && [ -x "$directory/pg_ctl" ] && [ -x "$directory/postgres" ]; then
            return 0
        fi
    done
    command -v initdb >/dev/null 2>&1 && command -v pg_ctl >/dev/null 2>&1 && command -v postgres >/dev/null 2>&1
}

# How to run a command as root, or nothing of use.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

if found; then
    exit 0
fi

if command -v apt-get >/dev/null 2>&1 && as_root true 2>/dev/null; then
    echo "PostgreSQL is not installed; installing it by apt-get, for the tests." >&2
    as_root apt-get update -q
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends postgresql
    if found; then
        exit 0
    fi
    echo "apt-get installed PostgreSQL, but its server programs were not found." >&2
fi

cat >&2 <<'ADVICE'
The tests need PostgreSQL 13 or newer: its server programs initdb, pg_ctl and postgres. No running server is needed.
  Debian, Ubuntu:  sudo apt-get install postgresql
  Fedora:          sudo dnf install postgresql-server
  macOS:           brew install postgresql@17
Install it, and run `make test` again.
ADVICE
exit 1
