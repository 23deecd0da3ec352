//! The command line: serve, migrate, print the contract, and administer API keys.

use std::collections::BTreeMap;
use std::io::{self, Write, stdout};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use order_service::app::{App, RelayAlone};
use order_service::config::Config;
use order_service::db::{self, Db, Pool};
use order_service::retention::{self, Cleaner, Step};
use order_service::{api, api_key};

mod cli;

use cli::Failure;

#[derive(Parser)]
#[command(version, about = "An order service with idempotent commands. Settings come from the environment and .env.")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Serve the API until SIGTERM or SIGINT. Creates and migrates the database first.
    Serve,
    /// Bring the database's schema up to date.
    Migrate(Migrate),
    /// Print the OpenAPI document.
    Openapi,
    /// Bring orders to the ERP and mails to customers, and serve nothing but metrics, until SIGTERM or SIGINT. Any number of
    /// these may run.
    Relay,
    /// Connect a tenant to its ERP, and compare both sides.
    #[command(subcommand)]
    Erp(cli::erp::Task),
    /// Connect a tenant to the server that sends its mails.
    #[command(subcommand)]
    Mail(cli::mail::Task),
    /// Drop recorded answers past the replay window, and forget keys past the key memory.
    #[command(subcommand)]
    Retention(Retention),
    /// Administer API keys.
    #[command(subcommand)]
    Key(Key),
}

#[derive(Args)]
struct Migrate {
    /// Undo every migration instead. All data goes.
    #[arg(long)]
    down: bool,
}

#[derive(Subcommand)]
enum Retention {
    /// Clean all that is due now, as the serving process does from time to time. May run beside it.
    Run {
        /// Only count what is due, and change nothing.
        #[arg(long)]
        dry_run: bool,
    },
}

#[derive(Subcommand)]
enum Key {
    /// Make a new key, and its tenant and client where they are missing. Prints the key alone; it cannot be shown again.
    Add {
        /// The company whose orders these are.
        #[arg(long)]
        tenant: String,
        /// The application that asks.
        #[arg(long)]
        client: String,
        /// What the key may do, separated by commas, such as orders:write,orders:read.
        #[arg(long, value_delimiter = ',', required = true)]
        scopes: Vec<String>,
    },
    /// List the keys: id, tenant, client, scopes, when issued, when revoked.
    List,
    /// Revoke a key. It holds for every call that begins afterwards, replays included.
    Revoke {
        /// The id that 'key list' shows.
        key_id: String,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(code) => code,
        // Whoever reads the output has read enough.
        Err(error) if is_broken_pipe(error.as_ref()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("order-service: {error}");
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn run(task: Task) -> Result<ExitCode, Failure> {
    if let Task::Openapi = task {
        write!(stdout(), "{}", api::document::default_text())?;
        return Ok(ExitCode::SUCCESS);
    }
    let config = Config::from_env()?;
    env_logger::Builder::new().parse_filters(&config.log_filter).init();
    match task {
        Task::Serve => serve(config)?,
        Task::Migrate(migrate) => {
            let names = if migrate.down { db::revert(&config.database)? } else { db::migrate(&config.database)? };
            for name in names {
                writeln!(stdout(), "{name}")?;
            }
        }
        Task::Relay => relay(config)?,
        Task::Erp(task) => return cli::erp::run(&config, task),
        Task::Mail(task) => cli::mail::run(&config, task)?,
        Task::Retention(Retention::Run { dry_run }) => clean(&config, dry_run)?,
        Task::Key(key) => administer_keys(&config, key)?,
        Task::Openapi => unreachable!("printed above, without any setting"),
    }
    Ok(ExitCode::SUCCESS)
}

fn serve(config: Config) -> Result<(), Failure> {
    actix_web::rt::System::new().block_on(async {
        let app = App::build(config)?;
        let address = app.address();
        log::info!("serving http://{address}, documentation at http://{address}/docs/");
        if let Some(address) = app.metrics_address() {
            log::info!("metrics at http://{address}/metrics");
        }
        if let Some(key) = app.demo_key() {
            print_first_steps(address, key);
        }
        app.run().await?;
        log::info!("stopped");
        Ok(())
    })
}

fn relay(config: Config) -> Result<(), Failure> {
    db::migrate(&config.database)?;
    actix_web::rt::System::new().block_on(async {
        let relay = RelayAlone::build(config)?;
        log::info!("bringing orders to the ERP; stop with SIGTERM or SIGINT");
        if let Some(address) = relay.metrics_address() {
            log::info!("metrics at http://{address}/metrics");
        }
        relay.run().await?;
        log::info!("stopped");
        Ok(())
    })
}

/// Shown once, on standard output: the demo key is not stored anywhere.
fn print_first_steps(address: std::net::SocketAddr, key: &str) {
    println!(
        "\nTenant 'demo', client 'shop'. This API key is shown once:\n\n  {key}\n\n\
         A first order, ready to paste; send it twice:\n\n\
         curl -i http://{address}/v1/orders \\\n  \
         -H 'Authorization: Bearer {key}' \\\n  \
         -H 'Idempotency-Key: {intent}' \\\n  \
         -H 'Content-Type: application/json' \\\n  \
         -d '{{\"customerId\":\"cus_123\",\"items\":[{{\"sku\":\"ABC\",\"qty\":2}}],\"currency\":\"EUR\"}}'\n",
        intent = uuid::Uuid::new_v4(),
    );
}

fn clean(config: &Config, dry_run: bool) -> Result<(), Failure> {
    let mut db = Db::open(&config.database)?;
    if db::migrations_pending(&mut db)? {
        return Err("the database lacks migrations; run 'order-service migrate' first".into());
    }
    if dry_run {
        for due in retention::due(&mut db)? {
            writeln!(stdout(), "{}\t{} keys to forget\t{} bodies to drop", due.tenant_id, due.keys, due.bodies)?;
        }
        return Ok(());
    }
    let cleaner = Cleaner::new(Pool::single(&config.database, config.pool_timeout), config.cleaner_batch);
    let mut done: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let swept = actix_web::rt::System::new().block_on(cleaner.run_once(|batch| {
        let (keys, bodies) = done.entry(batch.tenant_id.clone()).or_default();
        match batch.step {
            Step::Keys => *keys += batch.rows,
            Step::Bodies => *bodies += batch.rows,
        }
    }));
    for (tenant_id, (keys, bodies)) in done {
        writeln!(stdout(), "{tenant_id}\t{keys} keys forgotten\t{bodies} bodies dropped")?;
    }
    Ok(swept?)
}

fn administer_keys(config: &Config, key: Key) -> Result<(), Failure> {
    db::migrate(&config.database)?;
    let mut db = Db::open(&config.database)?;
    match key {
        Key::Add { tenant, client, scopes } => {
            let scopes: Vec<&str> = scopes.iter().map(|scope| scope.trim()).collect();
            writeln!(stdout(), "{}", api_key::issue(&mut db, &tenant, &client, &scopes)?)?;
        }
        Key::List => {
            for key in api_key::list(&mut db)? {
                let revoked =
                    key.revoked_at.map_or_else(|| "valid".to_owned(), |at| format!("revoked {}", db::rfc3339(at)));
                let (id, tenant, client, scopes) = (key.key_id, key.tenant_id, key.client_id, key.scopes);
                writeln!(
                    stdout(),
                    "{id}\t{tenant}\t{client}\t{scopes}\t{issued}\t{revoked}",
                    issued = db::rfc3339(key.created_at)
                )?;
            }
        }
        Key::Revoke { key_id } => {
            api_key::revoke(&mut db, &key_id)?;
            writeln!(stdout(), "{key_id} is revoked; calls that begin from now on are refused")?;
        }
    }
    Ok(())
}
