"""What the schemas of the contract cannot say, for the fuzzer: which texts are currencies, that an order names its customer
and a line its product, that a key is used once, that one precondition is sent and not two.

Without this almost every generated order is refused as invalid, and the fuzzer never gets past the first refusal. Three of
four requests are mended, chosen by their content so that a seed repeats a run; the rest go out as they were generated.
"""

import hashlib
import json

import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is not None and case.meta.phase.name.value == "coverage":
        # Each of these was made to break one rule, a missing header for one; mending would break another.
        return
    seen = json.dumps([case.method, case.path, repr(case.body)], default=repr).encode()
    chosen = hashlib.sha256(seen).digest()[0]
    if chosen % 4 == 0:
        return
    if case.headers is not None and "Idempotency-Key" in case.headers and chosen % 4 != 1:
        # A key of its own for each content: the same content again is a replay, and the rest of the keys meet conflicts.
        case.headers["Idempotency-Key"] = hashlib.sha256(seen).hexdigest()
        if "If-Match" in case.headers and "If-None-Match" in case.headers:
            del case.headers["If-Match"]
        elif case.method == "PUT" and case.path.startswith("/v1/orders/"):
            case.headers.setdefault("If-None-Match", "*")
    if isinstance(case.body, dict):
        mend(case.body)


def mend(body):
    """Makes what only looks like a currency one, and names customer and products."""
    if isinstance(body.get("currency"), str):
        body["currency"] = "EUR"
        for name in ("totals", "discounts", "payment"):
            body.pop(name, None)
        if "items" in body:
            body.setdefault("customerId", "cus_123")
    for name in ("placedAt", "expiresAt"):
        body.pop(name, None)
    for name in ("billingAddress", "shippingAddress"):
        if isinstance(body.get(name), dict):
            body[name].pop("country", None)
    for line in body.get("items") or []:
        if isinstance(line, dict):
            line.setdefault("sku", "ABC")
            for name in ("lineId", "parentLineId", "unitPrice", "total", "taxes"):
                line.pop(name, None)
