//! Both sides are compared beside a real ERP: what it has lost, has besides, and has changed is named; what it has lost it gets
//! again.

use order_service::erp::tryton::options::Target;

use crate::bench::{create, order, process_settings, relay, shop};
use crate::harness::process;
use crate::harness::world::{TENANT, World, on_both_databases};
use crate::tryton::Tryton;

/// Runs the program; returns its exit code, and the difference and the reference of each line, or the whole summary.
fn reconcile(world: &World, tryton: &Tryton, more: &[&str]) -> (i32, Vec<String>) {
    let arguments = ["erp", "reconcile", "--tenant", TENANT, "--since", "2020-01-01"];
    let output = process::run(world.database().url(), &[&arguments, more].concat(), &process_settings(tryton, &[]));
    let said = String::from_utf8(output.stdout).expect("it prints text");
    let short = |line: &str| match line.strip_prefix("summary\t") {
        Some(summary) => summary.replace('\t', " "),
        None => line.split('\t').take(2).collect::<Vec<_>>().join(" "),
    };
    let mut lines: Vec<String> = said.lines().map(short).collect();
    lines.sort_unstable();
    (output.status.code().expect("nobody killed it"), lines)
}

on_both_databases! {
    async fn what_the_erp_lost_is_found_and_is_a_sale_again(world: World) {
        let tryton = Tryton::start();
        let (shop, relay) = (shop(&world, &tryton, Target::Draft), relay(&world, &tryton, &[]));
        for name in ["1", "2", "3"] {
            create(&shop, &order(name)).await;
        }
        relay.drain(&world).await;
        let equal = "compared=3 on_their_way=0 missing=0 extra=0 different=0 queued=0";
        assert_eq!(reconcile(&world, &tryton, &[]), (0, vec![equal.to_owned()]));

        // People at the ERP have changed a name and a price.
        tryton.execute(
            "UPDATE sale_sale SET web_id = 'web/9' WHERE web_id = 'web/2'; \
             UPDATE sale_line SET unit_price = 1 WHERE sale = (SELECT id FROM sale_sale WHERE web_id = 'web/3')",
        );
        let found = |queued: usize| {
            let summary = format!("compared=3 on_their_way=0 missing=1 extra=1 different=1 queued={queued}");
            (1, vec![summary, "different web/3".to_owned(), "extra web/9".to_owned(), "missing web/2".to_owned()])
        };
        assert_eq!(reconcile(&world, &tryton, &[]), found(0));
        relay.drain(&world).await;
        assert_eq!(tryton.references(), ["web/1", "web/3", "web/9"], "who only looks changes nothing");

        assert_eq!(reconcile(&world, &tryton, &["--fix"]), found(1));
        relay.drain(&world).await;
        assert_eq!(tryton.references(), ["web/1", "web/2", "web/3", "web/9"]);
        let (_, lines) = reconcile(&world, &tryton, &[]);
        assert_eq!(lines, ["compared=3 on_their_way=0 missing=0 extra=1 different=1 queued=0", "different web/3", "extra web/9"]);
    }
}
