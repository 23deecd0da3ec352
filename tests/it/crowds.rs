//! Crowds that no machine has descriptors for: the handlers of the service, called without sockets. Whoever waits holds
//! neither a connection nor a thread, so that the others go on.

use std::future::Future;
use std::rc::Rc;

use actix_web::body::to_bytes;
use actix_web::dev::{Service, ServiceResponse};
use actix_web::middleware::from_fn;
use actix_web::test::{TestRequest, init_service};
use actix_web::{App, rt, web};
use futures_util::future::{LocalBoxFuture, join, join_all};
use order_service::api::{self, State, trace};
use order_service::api_key;
use order_service::db::Db;
use serde_json::{Value, json};

use crate::harness::database::{Database, Dialect};
use crate::harness::orders::{Tally, smallest};
use crate::harness::rival::{Rival, until_waiting};
use crate::harness::settings::config;
use crate::harness::world::{CLIENT, SCOPES, TENANT, World, on_both_databases};

/// An answer: its status and its body.
type Answer = (u16, Value);

/// The service without its sockets, on a database of its own.
struct Inside {
    database: Database,
    api_key: String,
    call: Rc<dyn Fn(TestRequest) -> LocalBoxFuture<'static, Answer>>,
    watching: rt::task::JoinHandle<()>,
}

impl Inside {
    async fn open(dialect: Dialect, settings: &[(&str, &str)]) -> Self {
        let database = Database::migrated(dialect);
        let config = config(database.url(), settings);
        let mut db = Db::open(&config.database).expect("the database opens");
        let api_key = api_key::issue(&mut db, TENANT, CLIENT, SCOPES).expect("a key can be issued");
        let state = web::Data::new(State::open(config).expect("the database opens"));
        let watching = rt::spawn(state.watch.clone().run(state.pools.reads.clone()));
        let app = App::new().app_data(state).wrap(from_fn(trace::middleware)).configure(api::configure);
        let app = Rc::new(init_service(app).await);
        let call = move |request: TestRequest| {
            let app = Rc::clone(&app);
            let answer: LocalBoxFuture<'static, Answer> = Box::pin(async move {
                let response: ServiceResponse<_> = app.call(request.to_request()).await.expect("an answer is no error");
                let status = response.status().as_u16();
                let body = to_bytes(response.into_body()).await.unwrap_or_else(|_| panic!("the body is whole"));
                (status, serde_json::from_slice(&body).expect("every answer here is JSON"))
            });
            answer
        };
        Self { database, api_key, call: Rc::new(call), watching }
    }

    fn post(&self, key: &str) -> impl Future<Output = Answer> + use<> {
        let request = TestRequest::post().uri("/v1/orders").insert_header(("Idempotency-Key", key));
        (self.call)(self.with_api_key(request).set_json(smallest()))
    }

    fn with_api_key(&self, request: TestRequest) -> TestRequest {
        request.insert_header(("Authorization", format!("Bearer {}", self.api_key)))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

on_both_databases! {
    async fn a_thousand_rivals_of_one_key_hold_up_no_other_key(world: World) {
        let settings = [("ORDERS_POOL_SIZE", "2"), ("ORDERS_POOL_TIMEOUT", "60s"), ("ORDERS_WAIT_LIMIT", "60s")];
        let inside = Inside::open(world.dialect(), &settings).await;
        // Only PostgreSQL lets the test hold the key until the others are through.
        let rival = (world.dialect() == Dialect::Postgres)
            .then(|| Rival::claims(&inside.database, "orders.create", "held"));
        let rivals = join_all((0..1000).map(|_| inside.post("held")));
        let others = async {
            if rival.is_some() {
                until_waiting(&inside.database, 1).await;
            }
            let others = join_all((0..50).map(|number| inside.post(&format!("free-{number}")))).await;
            if let Some(rival) = rival {
                assert_eq!(Tally::of(&inside.database), Tally::orders(50));
                rival.roll_back();
            }
            others
        };
        let (rivals, others) = join(rivals, others).await;
        assert!(others.iter().all(|(status, _)| *status == 201), "{others:?}");
        assert_eq!(rivals[0].0, 201, "{:?}", rivals[0]);
        assert!(rivals.iter().all(|answer| answer == &rivals[0]));
        assert_eq!(Tally::of(&inside.database), Tally::orders(51));
    }

    async fn who_waits_for_an_operation_holds_no_connection(world: World) {
        let settings = [("ORDERS_POOL_SIZE", "1"), ("ORDERS_POOL_TIMEOUT", "60s")];
        let inside = Inside::open(world.dialect(), &settings).await;
        let (_, made) = inside.post("watched").await;
        inside.database.execute(
            "UPDATE operations SET status = 'processing', completed_at = NULL, replay_until = NULL, remember_until = NULL",
        );
        let path = made["links"]["operation"].as_str().expect("a path").to_owned();
        let waiting = join_all((0..300).map(|_| {
            let request = TestRequest::get().uri(&path).insert_header(("Prefer", "wait=60"));
            (inside.call)(inside.with_api_key(request))
        }));
        let others = async {
            for number in 0..20 {
                let (status, body) = inside.post(&format!("free-{number}")).await;
                assert_eq!(status, 201, "{body}");
            }
            inside.database.execute(
                "UPDATE operations SET status = 'succeeded', completed_at = '2099-01-01 00:00:00', \
                 updated_at = '2099-01-01 00:00:00' WHERE status = 'processing'",
            );
        };
        let (answers, ()) = join(waiting, others).await;
        for (status, operation) in answers {
            assert_eq!((status, &operation["status"]), (200, &json!("succeeded")), "{operation}");
        }
        assert_eq!(Tally::of(&inside.database), Tally::orders(21));
    }
}
