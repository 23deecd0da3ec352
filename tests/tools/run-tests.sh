#!/bin/sh
# Runs all tests and ends with their counts. A failure in one binary does not hide the results of the others.
#
# Arguments: given on to `cargo test`, such as a part of the tests' names.

set -eu

output=$(mktemp)
trap 'rm -f -- "$output"' EXIT

# The status goes round the pipe, because a pipe's own status is that of `tee`.
status=$({ { ${CARGO:-cargo} test --locked --no-fail-fast "$@" 2>&1 && echo 0 >&3 || echo "$?" >&3; } | tee "$output" >&2; } 3>&1)

awk '
    /^test result:/ {
        for (i = 2; i <= NF; i++) {
            if ($i ~ /^passed/) passed += $(i - 1)
            if ($i ~ /^failed/) failed += $(i - 1)
            if ($i ~ /^ignored/) ignored += $(i - 1)
        }
    }
    /^test .*::sqlite \.\.\. ok$/ { sqlite++ }
    /^test .*::postgres \.\.\. ok$/ { postgres++ }
    END {
        printf "\n%d passed, %d failed, %d ignored; of the passed %d on SQLite and %d on PostgreSQL\n",
            passed, failed, ignored, sqlite, postgres
    }
' "$output"
exit "$status"
