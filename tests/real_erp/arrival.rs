//! An order arrives as it was sent: lines, taxes, addresses, names and total; and what cannot arrive says why.

use order_service::erp::tryton::options::Target;
use serde_json::{Value, json};

use crate::bench::{create, order, relay, shop};
use crate::harness::relay::{HandRelay, operation, outcomes};
use crate::harness::world::{World, on_both_databases};
use crate::tryton::Tryton;

/// An order of three lines, two rates, two addresses, and the figures of a shop that has rounded each line.
fn rich_order() -> Value {
    json!({
        "customerId": "cus_77", "customer": {"name": "Ľudmila Neskutočná", "email": "ludmila@example.org"},
        "currency": "EUR", "channel": "web", "externalOrderId": "48211", "externalOrderNumber": "2026-0048211",
        "placedAt": "2026-11-02T10:15:00+01:00", "note": "Zvoniť 2×.\nĎakujem! 🙏🏽",
        "billingAddress": {"firstName": "Ľudmila", "lastName": "Neskutočná", "lines": ["Nikde 7/B"], "city": "Wien", "postalCode": "1010", "country": "AT"},
        "shippingAddress": {"company": "Pekáreň – výdaj", "lines": ["Skúšobná 1", "brána 2"], "city": "Passau", "postalCode": "94032", "country": "DE"},
        "items": [
            {"sku": "TEE-BLK-M", "qty": 2, "unitPrice": "19.90", "total": "39.80", "taxes": [{"rate": 19, "amount": "7.56"}]},
            {"sku": "MUG-01", "qty": 3, "unitPrice": "9.50", "total": "28.50", "taxes": [{"rate": "7.0", "amount": "2.00"}]},
            {"kind": "shipping", "name": "Parcel", "qty": 1, "unitPrice": "4.90", "total": "4.90", "taxes": [{"rate": 19, "amount": "0.93"}]}
        ],
        "totals": {"net": "73.20", "tax": "10.49", "gross": "83.69"}
    })
}

const SALE: &str = "SELECT sale.web_id, sale.reference, sale.state, sale.number, sale.comment, date(sale.sale_date) AS day, \
     currency.code AS currency, party.code AS customer, party.name, \
     printf('%.2f', untaxed_amount_cache) AS net, printf('%.2f', tax_amount_cache) AS tax, \
     printf('%.2f', total_amount_cache) AS gross \
     FROM sale_sale AS sale JOIN currency_currency AS currency ON currency.id = sale.currency \
     JOIN party_party AS party ON party.id = sale.party";

const LINES: &str = "SELECT product.code AS sku, line.description, CAST(line.quantity AS TEXT) AS quantity, \
     printf('%.2f', line.unit_price) AS price, printf('%.2f', tax.rate) AS rate \
     FROM sale_line AS line LEFT JOIN product_product AS product ON product.id = line.product \
     JOIN \"sale_line-account_tax\" AS link ON link.line = line.id JOIN account_tax AS tax ON tax.id = link.tax \
     ORDER BY line.id";

const ADDRESSES: &str = "SELECT role, party_name, attn, street_unstructured AS street, postal_code, city, country.code AS country \
     FROM (SELECT 'invoice' AS role, invoice_address AS id FROM sale_sale \
           UNION ALL SELECT 'shipment', shipment_address FROM sale_sale) AS used \
     JOIN party_address AS address ON address.id = used.id \
     JOIN country_country AS country ON country.id = address.country ORDER BY role";

async fn is_refused(world: &World, tryton: &Tryton, relay: &HandRelay, order: &Value) -> String {
    let shop = shop(world, tryton, Target::Confirmed);
    let (order_id, operation_id) = create(&shop, order).await;
    relay.drain(world).await;
    let refused = operation(&shop, &operation_id).await;
    assert_eq!((&refused["status"], &refused["error"]), (&json!("failed"), &json!("RefusedByErp")));
    assert_eq!(outcomes(&refused), ["refused"]);
    assert_eq!(crate::harness::relay::order(&shop, &order_id).await["status"], "rejected");
    refused["erp"]["attempts"][0]["detail"].as_str().expect("an attempt says why").to_owned()
}

on_both_databases! {
    async fn an_order_is_a_sale_with_all_that_the_shop_said(world: World) {
        let tryton = Tryton::start();
        let (shop, relay) = (shop(&world, &tryton, Target::Confirmed), relay(&world, &tryton, &[]));
        let (order_id, operation_id) = create(&shop, &rich_order()).await;
        assert_eq!(relay.step().await, 1);

        let sold = tryton.rows(SALE);
        let number = sold[0]["number"].as_str().expect("a confirmed sale has a number").to_owned();
        assert_eq!(sold, [json!({
            "web_id": "web/48211", "reference": "2026-0048211", "state": "processing", "number": number,
            "comment": "Zvoniť 2×.\nĎakujem! 🙏🏽", "day": "2026-11-02", "currency": "EUR",
            "customer": "1-C-web/cus_77", "name": "Ľudmila Neskutočná", "net": "73.20", "tax": "10.49", "gross": "83.69"
        })]);
        assert_eq!(tryton.rows(LINES), [
            json!({"sku": "TEE-BLK-M", "description": null, "quantity": "2.0", "price": "19.90", "rate": "0.19"}),
            json!({"sku": "MUG-01", "description": null, "quantity": "3.0", "price": "9.50", "rate": "0.07"}),
            json!({"sku": null, "description": "Parcel", "quantity": "1.0", "price": "4.90", "rate": "0.19"}),
        ]);
        assert_eq!(tryton.rows(ADDRESSES), [
            json!({"role": "invoice", "party_name": "Ľudmila Neskutočná", "attn": null, "street": "Nikde 7/B", "postal_code": "1010", "city": "Wien", "country": "AT"}),
            json!({"role": "shipment", "party_name": "Pekáreň – výdaj", "attn": null, "street": "Skúšobná 1\nbrána 2", "postal_code": "94032", "city": "Passau", "country": "DE"}),
        ]);

        let (done, ours) = (operation(&shop, &operation_id).await, crate::harness::relay::order(&shop, &order_id).await);
        assert_eq!((&done["status"], outcomes(&done)), (&json!("succeeded"), vec!["delivered".to_owned()]));
        assert_eq!((&ours["status"], &ours["erpReference"], &ours["totals"]["gross"]), (&json!("confirmed"), &json!(number), &json!("83.69")));
    }

    async fn an_order_without_prices_has_those_of_the_erp(world: World) {
        let tryton = Tryton::start();
        let (shop, relay) = (shop(&world, &tryton, Target::Confirmed), relay(&world, &tryton, &[]));
        let body = json!({"customerId": "c", "currency": "EUR", "channel": "web", "externalOrderId": "1", "items": [{"sku": "MUG-01", "qty": 3}]});
        let (_, operation_id) = create(&shop, &body).await;
        relay.drain(&world).await;
        assert_eq!(operation(&shop, &operation_id).await["status"], "succeeded");
        // Three mugs at 9.50, and the tax of their category.
        let sold = tryton.rows(SALE);
        assert_eq!((&sold[0]["net"], &sold[0]["gross"]), (&json!("28.50"), &json!("33.92")));
    }

    async fn an_unknown_sku_is_refused_in_words_and_leaves_nothing(world: World) {
        let tryton = Tryton::start();
        let relay = relay(&world, &tryton, &[]);
        let mut unknown = order("1");
        unknown["items"][0]["sku"] = json!("NO-SUCH");
        let parties = tryton.count("party_party");
        let said = is_refused(&world, &tryton, &relay, &unknown).await;
        assert!(said.contains("item 1") && said.contains("unknown SKU NO-SUCH"), "{said}");
        assert_eq!((tryton.count("sale_sale"), tryton.count("party_party")), (0, parties));
    }

    /// What only the ERP itself finds wrong is said in its own words.
    async fn a_refusal_of_the_erp_is_shown_to_people(world: World) {
        let tryton = Tryton::start();
        let relay = relay(&world, &tryton, &[]);
        // A product that is not sold any more: found by its code, and refused in a sale.
        tryton.execute("UPDATE product_template SET salable = 0");
        let said = is_refused(&world, &tryton, &relay, &order("1")).await;
        assert!(said.contains("TEE-BLK-M") || said.contains("T-shirt black M"), "{said}");
        assert_eq!(tryton.count("sale_sale"), 0);
    }

    async fn a_payment_is_a_note_at_the_sale_and_its_answer_may_be_lost(world: World) {
        let tryton = Tryton::start();
        let wire = crate::wire::Wire::to(tryton.address());
        let relay = relay(&world, &tryton, &[("ORDERS_ERP_SETTLE", "0s")]);
        let shop = crate::bench::shop_at(&world, &tryton, wire.address(), Target::Confirmed);
        let (order_id, _) = create(&shop, &order("1")).await;
        let payment = json!({"orderId": order_id, "amount": "47.36", "currency": "EUR", "method": "card", "reference": "pi_1"});
        let paid = shop.post("/v1/payments", "pay", &payment).await.expect(201).json();
        wire.lose_the_answer_to("/ir.note");
        relay.drain(&world).await;
        assert_eq!(wire.lost(), 1);
        let paid = operation(&shop, paid["operationId"].as_str().expect("an id")).await;
        assert_eq!((&paid["status"], outcomes(&paid)), (&json!("succeeded"), vec!["unknown".into(), "already_there".into()]));
        let notes = tryton.rows("SELECT message FROM ir_note JOIN sale_sale ON resource = 'sale.sale,' || sale_sale.id");
        let text = notes[0]["message"].as_str().expect("a note is text");
        assert!(notes.len() == 1 && text.contains("47.36 EUR") && text.contains("pi_1"), "{notes:?}");
    }
}
