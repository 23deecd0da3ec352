#!/bin/sh
# Checks openapi/openapi.json with tools that are not ours: Redocly lints it, openapi-typescript makes types of it, and tsc
# compiles a small client that uses them. The tools are installed under target/, by npm.

set -eu

tools=target/check-contract
document=openapi/openapi.json

if ! command -v npm >/dev/null 2>&1; then
    echo "make check-contract needs Node.js 20 or newer with npm. Debian, Ubuntu: sudo apt-get install npm" >&2
    exit 1
fi

mkdir -p "$tools"
cat >"$tools/package.json" <<'PACKAGE'
{
  "private": true,
  "dependencies": { "@redocly/cli": "2.77.0", "openapi-typescript": "7.13.0", "typescript": "5.9.3" }
}
PACKAGE
npm install --prefix "$tools" --no-audit --no-fund --silent
bin=$tools/node_modules/.bin

REDOCLY_TELEMETRY=off "$bin/redocly" lint --config openapi/redocly.yaml "$document"

# Without the option every member that has a default would have to be sent.
"$bin/openapi-typescript" "$document" --default-non-nullable=false --output "$tools/contract.d.ts"
cat >"$tools/client.ts" <<'CLIENT'
import type { components, operations } from "./contract";

type Order = components["schemas"]["OrderInput"];
type Done = operations["ordersCreate"]["responses"]["201"]["content"]["application/json"];
type Problem = components["schemas"]["Problem"];

const smallest: Order = { customerId: "cus_123", currency: "EUR", items: [{ sku: "ABC", qty: 2 }] };

export async function send(base: string, apiKey: string, intent: string): Promise<Done> {
  const response = await fetch(base + "/v1/orders", {
    method: "POST",
    headers: { Authorization: `Bearer ${apiKey}`, "Idempotency-Key": intent, "Content-Type": "application/json" },
    body: JSON.stringify(smallest),
  });
  if (response.status === 201) return (await response.json()) as Done;
  const problem = (await response.json()) as Problem;
  if (problem.retry.advised && problem.retry.sameKey) return send(base, apiKey, intent);
  throw new Error(`${problem.error}: ${problem.message}`);
}

// @ts-expect-error: an order without lines is none.
export const empty: Order = { customerId: "cus_123", currency: "EUR" };
// @ts-expect-error: unknown members are refused.
export const unknown: Order = { ...smallest, colour: "red" };
CLIENT
"$bin/tsc" --noEmit --strict --target es2022 --lib es2022,dom --skipLibCheck false "$tools/client.ts"
echo "a TypeScript client of the contract compiles"
