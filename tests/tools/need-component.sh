#!/bin/sh
# Makes sure that a component of the Rust toolchain (rustfmt, clippy) is there: minimal installations lack it.
#
# Arguments: the component.

set -eu
component=$1

case $component in
clippy) command=clippy ;;
*) command=fmt ;;
esac
if ${CARGO:-cargo} "$command" --version >/dev/null 2>&1; then
    exit 0
fi
if command -v rustup >/dev/null 2>&1 && rustup component add "$component"; then
    exit 0
fi
echo "$component is missing. Install it: rustup component add $component" >&2
exit 1
