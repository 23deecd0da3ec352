//! The audit can fail: rows, documents and the journal of a good run are spoilt one after the other, and it must see each.

use std::fs;
use std::sync::Arc;

use crate::audit::audit;
use crate::erp::Promise;
use crate::faults::CALM;
use crate::progress::Progress;
use crate::shop::Shop;
use crate::shop::intent::Intent;
use crate::shop::journal::Journal;
use crate::stage::Stage;

/// Enough for one order of each kind.
const FAMILIES: usize = 12;

/// What is spoilt, by which statement, how that is undone, and what the audit has to say.
struct Spoilt {
    statement: &'static str,
    undo: &'static str,
    said: &'static str,
}

const ROWS: &[Spoilt] = &[
    Spoilt {
        statement: "INSERT INTO orders SELECT tenant_id, 'ord_twice', client_id, operation_id, channel, NULL, customer_id, \
            currency, status, reference, erp_reference, paid_amount, document, version, created_at, updated_at \
            FROM orders ORDER BY order_id LIMIT 1",
        undo: "DELETE FROM orders WHERE order_id = 'ord_twice'",
        said: "2 orders, not 1",
    },
    Spoilt {
        statement: "UPDATE orders SET document = replace(document, 'intent-', 'stranger-') \
            WHERE order_id = (SELECT min(order_id) FROM orders)",
        undo: "UPDATE orders SET document = replace(document, 'stranger-', 'intent-')",
        said: "0 orders, not 1",
    },
    Spoilt {
        statement: "UPDATE outbox SET kind = 'order.replaced' WHERE kind = 'order.created' \
            AND order_id = (SELECT min(order_id) FROM orders)",
        undo: "UPDATE outbox SET kind = 'order.created' WHERE kind = 'order.replaced'",
        said: "orders without exactly one hand-over",
    },
    Spoilt {
        statement: "UPDATE outbox SET operation_id = 'x' || operation_id WHERE order_id = (SELECT min(order_id) FROM orders)",
        undo: "UPDATE outbox SET operation_id = substr(operation_id, 2) WHERE operation_id LIKE 'xop%'",
        said: "messages without an operation",
    },
    Spoilt {
        statement: "UPDATE operations SET reply_body = reply_body || ' ' WHERE command = 'orders.create'",
        undo: "UPDATE operations SET reply_body = trim(reply_body)",
        said: "not replayed as it was",
    },
    Spoilt {
        statement: "INSERT INTO claims SELECT tenant_id, client_id, command, 'nobody', fingerprint, 'op_nobody', created_at \
            FROM claims LIMIT 1",
        undo: "DELETE FROM claims WHERE idempotency_key = 'nobody'",
        said: "claims without a result",
    },
    Spoilt {
        statement: "UPDATE outbox SET state = 'parked' WHERE kind = 'order.created'",
        undo: "UPDATE outbox SET state = 'delivered' WHERE state = 'parked'",
        said: "messages that wait for a person",
    },
];

/// Fails when the audit finds something in a good run, or does not find what was spoilt.
pub fn the_audit_sees_what_is_wrong(seed: u64) {
    let mut stage = Stage::set(&CALM, &CALM.grounds[0], seed, Promise::Resend);
    let progress = Arc::new(Progress::default());
    let shop = Shop::new(Journal::begin(stage.home()), progress, seed, &stage.api_key);
    // Every order stays: the statements need rows that say what the rows of a delivered order say.
    for number in 0..FAMILIES {
        shop.carry_out(&Intent::smallest(&format!("intent-{number}")), stage.front.address(), "worker");
    }
    let said = |stage: &mut Stage| audit(stage, &shop).wrong.join("\n");
    assert_eq!(said(&mut stage), "", "a good run is good");
    let look = stage.look();
    for Spoilt { statement, undo, said: wanted } in ROWS {
        look.execute(statement);
        let found = said(&mut stage);
        assert!(found.contains(wanted), "after {statement}: {found}");
        look.execute(undo);
    }
    let file = stage.erp.file().to_owned();
    let documents = fs::read_to_string(&file).expect("the ERP has its file");
    let (first, others) = documents.split_once('\n').expect("the ERP has an order");
    for (spoilt, wanted) in [
        (format!("{documents}{first}\n"), "the ERP has 2 of it, not 1"),
        (others.to_owned(), "the ERP has 0 of it, not 1"),
        (format!("{documents}order.created\tnobody\tkey\n"), "the service has not"),
    ] {
        fs::write(&file, spoilt).expect("the directory is ours");
        let found = said(&mut stage);
        assert!(found.contains(wanted), "{wanted}: {found}");
    }
    fs::write(&file, &documents).expect("the directory is ours");
    assert_eq!(said(&mut stage), "", "what was spoilt was mended");
    shop.journal.intend(&Intent::smallest("never sent"));
    let found = audit(&mut stage, &shop);
    assert!(found.lost == 1 && found.wrong == ["never sent: no answer"], "{found:?}");
}
