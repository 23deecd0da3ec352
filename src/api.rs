//! The edge: HTTP in, HTTP out. Every route of the service comes from the list of commands or from [`READS`].

use std::collections::BTreeMap;

use actix_web::http::Method;
use actix_web::{HttpRequest, HttpResponse, Route, web};

use crate::command::{Command, CommandVisitor, Retention, gate::Gate, visit_commands};
use crate::config::Config;
use crate::db::{OpenError, Pools};
use crate::problem::{Code, Problem};
use answer::ProblemError;
use limit::Limit;
use prepared::LargeBodies;
use read::Read;
use watch::Watch;

pub mod accept;
pub mod access;
pub mod answer;
pub mod body;
pub mod caller;
pub mod commands;
pub mod document;
pub mod fault;
pub mod health;
pub mod limit;
pub mod messages;
pub mod operations;
pub mod orders;
pub mod page;
pub mod path;
pub mod payments;
pub mod policy;
pub mod prefer;
pub mod prepared;
pub mod read;
pub mod reservations;
pub mod stock;
pub mod trace;
pub mod unread;
pub mod watch;

/// What every handler works with.
#[allow(missing_debug_implementations, reason = "the pools have no Debug")]
pub struct State {
    /// The settings.
    pub config: Config,
    /// The database.
    pub pools: Pools,
    /// The queue of rivals before the pool.
    pub gate: Gate,
    /// How many large bodies may be computed at a time.
    pub large_bodies: LargeBodies,
    /// How many requests a client may make.
    pub limit: Limit,
    /// The clients that wait for an operation to change.
    pub watch: Watch,
    /// The two windows of a key.
    pub retention: Retention,
    /// The contract document with the times of the settings.
    pub contract: String,
}

impl State {
    /// Opens the database as `config` says. It has to have the tables of the newest migration before a request comes.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub fn open(config: Config) -> Result<State, OpenError> {
        Ok(State {
            pools: Pools::open(&config.database, config.pool_size, config.pool_timeout)?,
            gate: Gate::default(),
            large_bodies: LargeBodies::at_most(config.workers),
            limit: Limit::per_second(config.rate_limit),
            watch: Watch::default(),
            retention: Retention { replay_window: config.replay_window, key_memory: config.key_memory },
            contract: document::text(&config, document::Times::Configured),
            config,
        })
    }
}

/// Every read of the service. A new read is its file and its line here; the contract document is made of this list too.
pub static READS: &[&Read] = &[
    &orders::contract::LIST,
    &orders::contract::GET,
    &payments::GET,
    &messages::GET,
    &stock::GET,
    &reservations::GET,
    &operations::contract::LIST,
    &operations::contract::GET,
    &policy::GET,
    &health::ALIVE,
    &health::READY,
    &document::GET,
];

/// Adds every route of the service.
pub fn configure(service: &mut web::ServiceConfig) {
    Routes::all().install(service);
    document::configure_swagger_ui(service);
    service.default_service(web::to(nothing_here));
}

/// The routes by path, so that a wrong method can be answered with the right ones.
#[derive(Default)]
struct Routes(BTreeMap<&'static str, Vec<(Method, Route)>>);

impl Routes {
    fn all() -> Routes {
        let mut routes = Routes::default();
        visit_commands(&mut routes);
        for read in READS {
            routes.read(read);
        }
        routes
    }

    fn read(&mut self, read: &Read) {
        let methods = self.0.entry(read.path).or_default();
        methods.push((Method::GET, (read.route)().method(Method::GET)));
        methods.push((Method::HEAD, (read.route)().method(Method::HEAD)));
    }

    fn install(self, service: &mut web::ServiceConfig) {
        for (path, routes) in self.0 {
            let allow = routes.iter().map(|(method, _)| method.as_str()).collect::<Vec<_>>().join(", ");
            let resource = routes.into_iter().fold(web::resource(path), |resource, (_, route)| resource.route(route));
            service.service(resource.default_service(web::to(move |request: HttpRequest| {
                let allow = allow.clone();
                async move { wrong_method(&request, &allow) }
            })));
        }
    }
}

impl CommandVisitor for Routes {
    fn visit<C: Command + Clone>(&mut self) {
        let method = match C::SPEC.method {
            crate::command::Method::Post => Method::POST,
            crate::command::Method::Put => Method::PUT,
        };
        let route = web::route().method(method.clone()).to(commands::handle::<C>);
        self.0.entry(C::SPEC.route).or_default().push((method, route));
    }
}

/// The routes of the service, method and path; Swagger UI is none of them.
#[must_use]
pub fn routes() -> Vec<(String, &'static str)> {
    let routes = Routes::all().0;
    let pairs = routes.iter().flat_map(|(path, routes)| routes.iter().map(|(method, _)| (method.to_string(), *path)));
    pairs.collect()
}

async fn nothing_here() -> Result<HttpResponse, ProblemError> {
    Err(Problem::new(Code::RouteNotFound, "This service has no such path.").into())
}

fn wrong_method(request: &HttpRequest, allow: &str) -> HttpResponse {
    let problem = Problem::new(Code::MethodNotAllowed, format!("This path knows {allow}."));
    let mut response = answer::problem_response(request, &problem, None);
    if let Ok(value) = actix_web::http::header::HeaderValue::from_str(allow) {
        response.headers_mut().insert(actix_web::http::header::ALLOW, value);
    }
    response
}
