#!/bin/sh
# Makes sure that a real ERP is there for `make test-erp`: Tryton 8.0 on SQLite, from PyPI, with the master data of a small
# company. It is built once, below the target directory; the tests copy its database and never change it.
#
# It needs Python 3.11 or newer with its module venv. Debian and Ubuntu: installs them by apt-get when it may (as root, or by sudo
# without a password). Elsewhere it says what to install, and fails. It never skips.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${CARGO_TARGET_DIR:-target}"
home=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)/tryton

# How to run a command as root, or nothing of use.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo -n "$@"
    fi
}

# Debian has Python without the part of venv that brings pip.
found() {
    python3 -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

need_python() {
    if found; then
        return 0
    fi
    if command -v apt-get >/dev/null 2>&1 && as_root true 2>/dev/null; then
        echo "Python's module venv is not installed; installing it by apt-get, for the tests." >&2
        as_root apt-get update -q >&2
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends python3-venv >&2
        if found; then
            return 0
        fi
    fi
    cat >&2 <<'ADVICE'
The tests against a real ERP need Python 3.11 or newer with its module venv.
  Debian, Ubuntu:  sudo apt-get install python3-venv
  Fedora:          sudo dnf install python3
  macOS:           brew install python
Install it, and run `make test-erp` again.
ADVICE
    return 1
}

# What the ERP is made of. It is built anew when any of it has changed.
stamp() {
    python3 --version
    cksum <"$0"
    cksum <"$here/tryton/requirements.txt"
    cksum <"$here/tryton/master_data.py"
    # A directory that was moved holds programs that do not find each other.
    echo "$home"
}

# Runs a step, and shows what it said only where it fails.
quietly() {
    if ! "$@" >"$home/log" 2>&1; then
        tail -n 40 "$home/log" >&2
        echo "setting up Tryton failed: $1" >&2
        exit 1
    fi
}

build() {
    # What a build that was interrupted has left is of no use.
    rm -rf -- "$home"
    mkdir -p "$home"
    python3 -m venv "$home/venv"
    quietly "$home/venv/bin/pip" install --disable-pip-version-check --no-input --quiet \
        --requirement "$here/tryton/requirements.txt"

    cat >"$home/trytond.conf" <<CONF
[database]
uri = sqlite://
path = $home
list = False
CONF
    # Nobody logs in as the administrator: the tests use the key of a user who may only sell.
    (umask 077 && python3 -c 'import secrets; print(secrets.token_urlsafe(24))' >"$home/password")
    : >"$home/erp.sqlite"
    export TRYTONPASSFILE="$home/password"
    quietly "$home/venv/bin/trytond-admin" --config "$home/trytond.conf" --database erp --all --email admin@example.org
    quietly "$home/venv/bin/trytond-admin" --config "$home/trytond.conf" --database erp \
        --update sale web_shop --activate-dependencies
    quietly "$home/venv/bin/python" "$here/tryton/master_data.py" "$home/trytond.conf" "$home/key.json"
    # Written last: a build without it is no build.
    stamp >"$home/stamp"
}

need_python
if [ "$(cat "$home/stamp" 2>/dev/null)" != "$(stamp)" ]; then
    echo "setting up Tryton below $home, once; it takes about a minute" >&2
    build
fi
