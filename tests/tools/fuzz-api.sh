#!/bin/sh
# Fuzzes the running service by its own contract document: no 5xx, and no answer that the document does not declare.
#
# The service is built and started on a temporary SQLite file; then, where FUZZ_DATABASE_URL names one, on that PostgreSQL
# database, which should be one that may be thrown away. Everything that was started is stopped at the end, by process id.
# FUZZ_SEED repeats a run, FUZZ_EXAMPLES is the number of cases an operation, FUZZ_PHASES what is tried.

set -eu

SCHEMATHESIS_VERSION=4.32.5
seed=${FUZZ_SEED:-20260302}
examples=${FUZZ_EXAMPLES:-60}
phases=${FUZZ_PHASES:-examples,coverage,fuzzing,stateful}
checks=not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance
checks=$checks,response_schema_conformance,missing_required_header,ignored_auth,unsupported_method

root=$(pwd)
program=$root/target/debug/order-service
tools=$root/target/fuzz-api
place=$(mktemp -d)
service=

stop() {
    if [ -n "$service" ]; then
        kill "$service" 2>/dev/null || true
        wait "$service" 2>/dev/null || true
        service=
    fi
}
trap 'stop; rm -rf -- "$place"' EXIT
trap 'exit 130' INT TERM

install_schemathesis() {
    if [ "$("$tools/venv/bin/st" --version 2>/dev/null)" != "st, version $SCHEMATHESIS_VERSION" ]; then
        python3 -m venv "$tools/venv"
        "$tools/venv/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$SCHEMATHESIS_VERSION"
    fi
}

# Every scope that the document names, separated by commas.
scopes() {
    "$program" openapi | "$tools/venv/bin/python" -c '
import json, sys
paths = json.load(sys.stdin)["paths"].values()
needs = [need for path in paths for operation in path.values() for need in operation["security"]]
print(",".join(sorted({scope for need in needs for scopes in need.values() for scope in scopes})))'
}

# Where the service listens, once it says so.
address() {
    tries=0
    while ! grep -q 'serving http://' "$place/service.log"; do
        tries=$((tries + 1))
        if [ "$tries" -gt 300 ] || ! kill -0 "$service" 2>/dev/null; then
            cat "$place/service.log" >&2
            return 1
        fi
        sleep 0.1
    done
    sed -n 's/.*serving \(http:[^,]*\),.*/\1/p' "$place/service.log" | head -n 1
}

fuzz() {
    echo "== $1: seed $seed, $examples examples an operation, phases $phases"
    # The directory is empty, so that no .env of a developer reaches the service.
    cd "$place"
    export DATABASE_URL="$2" ORDERS_BIND=127.0.0.1:0 ORDERS_METRICS_BIND= ORDERS_DEMO=off RUST_LOG=warn,order_service=info
    api_key=$("$program" key add --tenant fuzz --client fuzz --scopes "$scopes" 2>"$place/key.log") || {
        cat "$place/key.log" >&2
        return 1
    }
    "$program" serve >"$place/service.log" 2>&1 &
    service=$!
    url=$(address)
    status=0
    # One worker: with several, the order of the requests differs from run to run, and the seed repeats nothing.
    SCHEMATHESIS_HOOKS=fuzz_hooks PYTHONPATH="$root/tests/tools" PYTHONDONTWRITEBYTECODE=1 \
        "$tools/venv/bin/st" run "$url/openapi.json" --header "Authorization: Bearer $api_key" --checks "$checks" \
        --phases "$phases" --max-examples "$examples" --seed "$seed" --workers 1 --generation-database none \
        --request-timeout 30 --continue-on-failure --no-color --suppress-health-check all || status=$?
    if grep -E 'status=5[0-9][0-9]|panic=' "$place/service.log" >"$place/faults.log"; then
        echo "the service failed $(wc -l <"$place/faults.log") times:" >&2
        head -n 20 "$place/faults.log" >&2
        status=1
    fi
    echo "answers by status, as the service logged them:"
    sed -n 's/.* status=\([0-9]*\) .* method=\([A-Z]*\) route=\(.*\)$/\2 \3 \1/p' "$place/service.log" \
        | grep -v ' 405$' | sort | uniq -c | awk '{
            route = $2 " " $3
            if (route != last) printf "%s  %s:", (last == "" ? "" : "\n"), route
            printf " %s x%d", $4, $1
            last = route
        } END { print "" }'
    stop
    cd "$root"
    return "$status"
}

${CARGO:-cargo} build --locked --quiet
install_schemathesis
scopes=$(scopes)
fuzz SQLite "sqlite://$place/orders.db"
if [ -n "${FUZZ_DATABASE_URL:-}" ]; then
    fuzz PostgreSQL "$FUZZ_DATABASE_URL"
else
    echo "PostgreSQL was not tried: name a database that may be thrown away in FUZZ_DATABASE_URL"
fi
