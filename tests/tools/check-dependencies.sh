#!/bin/sh
# Looks for dependencies that nothing uses (cargo-machete) and for ones with a known vulnerability (cargo-audit).
#
# A tool that is not installed is built once into the target directory. Where it cannot be built, or the list of
# vulnerabilities cannot be reached, one line says so and the rest goes on: a machine without network can still lint.
# What a tool finds is an error.

set -eu

cargo=${CARGO:-cargo}
tools=${CARGO_TARGET_DIR:-target}/tools
advisories=https://github.com/RustSec/advisory-db.git
PATH=$tools/bin:$PATH
export PATH

# Runs a command for at most so many seconds, where the system has `timeout`.
limited() {
    seconds=$1
    shift
    if command -v timeout >/dev/null 2>&1; then
        timeout "$seconds" "$@"
    else
        "$@"
    fi
}

# Finds a tool or builds it. A debug build without debug information is quick to make and quick enough to run.
need() {
    if command -v "$1" >/dev/null 2>&1; then
        return 0
    fi
    echo "building $1 $2, once" >&2
    limited "$3" env CARGO_PROFILE_DEV_DEBUG=false "$cargo" install --quiet --locked --debug \
        --root "$tools" --target-dir "$tools/build" "$1" --version "$2"
}

failed=0

if need cargo-machete 0.9.2 180; then
    "$cargo" machete || failed=1
else
    echo "unused dependencies: NOT checked, cargo-machete could not be built here"
fi

# The list is asked for first: without it there is no use in minutes of building.
if ! GIT_TERMINAL_PROMPT=0 limited 20 git ls-remote --exit-code "$advisories" HEAD >/dev/null 2>&1; then
    echo "vulnerable dependencies: NOT checked, $advisories cannot be reached from here"
elif ! need cargo-audit 0.22.2 420; then
    echo "vulnerable dependencies: NOT checked, cargo-audit could not be built here"
else
    "$cargo" audit || failed=1
fi

exit "$failed"
