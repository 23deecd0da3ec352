#!/bin/sh
# Makes sure that nginx and libfaketime are there, which the bench needs beside PostgreSQL: it puts a real nginx before the
# processes of the service, and gives a process a clock of its own.
#
# Debian and Ubuntu: installs them by apt-get when it may (as root, or by sudo without a password).
# Elsewhere it says what to install, and fails. It never skips.

set -eu

found() {
    command -v nginx >/dev/null 2>&1 && ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1
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
    echo "nginx or libfaketime is not installed; installing them by apt-get, for the bench." >&2
    as_root apt-get update -q
    # The bench starts its own nginx. In a container, run level 1 keeps the installation from starting another one.
    as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -q -y --no-install-recommends nginx-light libfaketime
    if found; then
        exit 0
    fi
    echo "apt-get installed them, but they were not found." >&2
fi

cat >&2 <<'ADVICE'
The bench needs nginx and libfaketime. No running server is needed.
  Debian, Ubuntu:  sudo apt-get install nginx-light libfaketime
Install them, and run it again.
ADVICE
exit 1
