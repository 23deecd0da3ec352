#!/bin/sh
# Makes sure that nginx is there, which the bench puts before the processes of the service; and, for the argument `all`,
# libfaketime, which gives a process a clock of its own.
#
# Debian and Ubuntu: installs them by apt-get when it may (as root, or by sudo without a password).
# Elsewhere it says what to install. Without nginx it fails; without libfaketime the bench leaves the clock out, and says so.

set -eu

wanted=${1:-nginx}

has_clock() {
    [ "$wanted" != all ] || ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1
}

has_nginx() {
    command -v nginx >/dev/null 2>&1
}

# How to run a command as root, or nothing of use.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

if has_nginx && has_clock; then
    exit 0
fi

if command -v apt-get >/dev/null 2>&1 && as_root true 2>/dev/null; then
    packages=nginx-light
    [ "$wanted" != all ] || packages="$packages libfaketime"
    echo "Installing $packages by apt-get, for the bench." >&2
    as_root apt-get update -q
    # The bench starts its own nginx. In a container, run level 1 keeps the installation from starting another one.
    # shellcheck disable=SC2086 # two packages are two words
    as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -q -y --no-install-recommends $packages
fi

has_clock || echo "libfaketime was not found: the fault of the clock is left out (Debian: apt-get install libfaketime)." >&2
if has_nginx; then
    exit 0
fi

cat >&2 <<'ADVICE'
The bench needs nginx. No running server is needed.
  Debian, Ubuntu:  sudo apt-get install nginx-light
  Fedora:          sudo dnf install nginx
  macOS:           brew install nginx
Install it, and run it again.
ADVICE
exit 1
