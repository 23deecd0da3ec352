//! Crowds at one place: many on one key, rivals with two bodies, commands in opposite order, clients that leave. Each returns
//! what was heard that no client should hear; the rows are audited as after every run.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::chance;
use crate::http;
use crate::progress::pause;
use crate::shop::intent::Intent;
use crate::shop::{Answer, End, Shop};
use crate::stage::Stage;

/// A thread of a crowd only sends and waits.
const STACK: usize = 256 * 1024;

/// So many of a hundred parts, at least two.
fn scaled(whole: usize, percent: usize) -> usize {
    (whole * percent / 100).max(2)
}

fn services(stage: &Stage) -> Vec<SocketAddr> {
    stage.services.iter().map(|service| service.address).collect()
}

/// Sends these intents all at once, each on a thread of its own, and returns how each of them ended.
fn all_at_once(shop: &Shop, addresses: &[SocketAddr], intents: &[&Intent]) -> Vec<End> {
    let ends = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (number, intent) in intents.iter().enumerate() {
            let (ends, address) = (&ends, addresses[number % addresses.len()]);
            let rival = move || {
                let end = shop.pursue(intent, address, &format!("rival-{number}"));
                ends.lock().expect("no rival panics").push((number, end));
            };
            thread::Builder::new().stack_size(STACK).spawn_scoped(scope, rival).expect("a thread starts");
        }
    });
    let mut ends = ends.into_inner().expect("no rival panics");
    ends.sort_unstable_by_key(|(number, _)| *number);
    ends.into_iter().map(|(_, end)| end).collect()
}

/// A thousand requests on one key, over all processes.
pub fn on_one_key(stage: &Stage, shop: &Shop, percent: usize) -> Vec<String> {
    let intent = Intent::smallest("the-only-one");
    shop.journal.intend(&intent);
    let ends = all_at_once(shop, &services(stage), &vec![&intent; scaled(1000, percent)]);
    let others = ends.iter().filter(|end| !matches!(end, End::Answered(_)) || *end != &ends[0]);
    others.map(|end| format!("one key was answered otherwise: {end:?}")).collect()
}

/// Two hundred keys with twenty rivals each, half of them with another body. Whoever wins, the other body hears of a conflict.
pub fn with_two_bodies(stage: &Stage, shop: &Shop, percent: usize) -> Vec<String> {
    let mut wrong = Vec::new();
    for number in 0..scaled(200, percent) {
        let one = Intent::smallest(&format!("contested-{number}"));
        let other = Intent { key: one.key.clone(), ..Intent::smallest(&format!("contested-{number}-other")) };
        shop.journal.intend(&one);
        shop.journal.intend(&other);
        let intents: Vec<&Intent> = (0..20).map(|rival| if rival % 2 == 0 { &one } else { &other }).collect();
        let ends = all_at_once(shop, &services(stage), &intents);
        let winner = usize::from(!matches!(ends[0], End::Answered(_)));
        let answer = &ends[winner];
        let fits = |(rival, end): (usize, &End)| {
            if rival % 2 == winner { end == answer } else { *end == End::Conflict }
        };
        if !matches!(answer, End::Answered(_)) || !ends.iter().enumerate().all(fits) {
            wrong.push(format!("{}: {ends:?}", one.key));
        }
    }
    wrong
}

/// Commands on two orders and on two SKUs, by workers that take them in opposite order.
pub fn in_opposite_order(stage: &Stage, shop: &Shop, percent: usize) -> Vec<String> {
    let addresses = services(stage);
    for sku in ["left", "right"] {
        shop.carry_out(&Intent::stock(&format!("stock-{sku}"), sku, 1_000_000), addresses[0], "worker");
    }
    let order = |name: &str| order_id(&shop.carry_out(&Intent::smallest(name), addresses[0], "worker"));
    let mut wrong = Vec::new();
    for round in 0..scaled(30, percent) {
        let orders = [order(&format!("first-{round}")), order(&format!("second-{round}"))];
        thread::scope(|scope| {
            for worker in 0..8 {
                let (orders, address) = (&orders, addresses[worker % addresses.len()]);
                scope.spawn(move || opposite_commands(shop, address, (round, worker), orders));
            }
        });
        let cancels = [0, 1].map(|one| Intent::cancel(&format!("cancel-{round}-{one}"), &orders[one]));
        for cancel in &cancels {
            shop.journal.intend(cancel);
        }
        let ends = all_at_once(shop, &addresses, &[&cancels[0], &cancels[1]]);
        wrong.extend(ends.iter().filter(|end| !matches!(end, End::Answered(_))).map(|end| format!("{end:?}")));
    }
    let faults = shop.progress.counts().unavailable;
    if faults > 0 {
        wrong.push(format!("{faults} answers were faults, such as of a deadlock"));
    }
    wrong
}

fn opposite_commands(shop: &Shop, address: SocketAddr, (round, worker): (usize, usize), orders: &[String; 2]) {
    let client = format!("worker-{worker}");
    let mut skus = ["left", "right"];
    let mut way = [0, 1];
    if worker % 2 == 1 {
        skus.reverse();
        way.reverse();
    }
    shop.carry_out(&Intent::reservation(&format!("reserve-{round}-{worker}"), skus), address, &client);
    for one in way {
        let payment = Intent::payment(&format!("pay-{round}-{worker}-{one}"), &orders[one], "RUB");
        shop.carry_out(&payment, address, &client);
    }
}

fn order_id(end: &End) -> String {
    let End::Answered(Answer { body, .. }) = end else { panic!("an order is made: {end:?}") };
    let made: Value = serde_json::from_str(body).unwrap_or(json!(null));
    made["orderId"].as_str().unwrap_or_else(|| panic!("an order has an id: {body}")).to_owned()
}

/// A client that leaves after each hundredth part of its request, and at random moments after the whole of it; then it comes
/// again with the same key.
pub fn that_leaves(stage: &Stage, shop: &Shop, percent: usize) -> Vec<String> {
    let addresses = services(stage);
    let parts = scaled(100, percent);
    let mut wrong = Vec::new();
    for point in 0..2 * parts {
        let intent = Intent::smallest(&format!("leaving-{point}"));
        shop.journal.intend(&intent);
        let request = shop.request(&intent);
        let address = addresses[point % addresses.len()];
        let mut stream = http::connect(address).expect("the service takes connections");
        let length = request.len() * point.min(parts) / parts;
        stream.write_all(&request[..length]).expect("the service reads");
        if point > parts {
            let mut rng = chance::of(0, &["leaving", &point.to_string()]);
            pause(Duration::from_micros(rng.u64(0..15_000)));
        }
        drop(stream);
        let end = shop.pursue(&intent, address, "leaving");
        if !matches!(end, End::Answered(_)) {
            wrong.push(format!("{}: {end:?}", intent.key));
        }
    }
    wrong
}
