//! A process that brings orders to the ERP and serves nothing but its metrics, as [`App`](super::App) is one that serves.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::dev::Server;
use actix_web::{rt, web};

use super::{Relaying, StartError, connections_of, serve_metrics, stop_signal};
use crate::config::Config;
use crate::db::Pool;
use crate::metrics::Metrics;
use crate::relay::Relay;

/// The relay alone, ready to run. On SQLite it works beside the serving process, and waits for its writes.
#[allow(missing_debug_implementations, reason = "servers of actix have no Debug")]
pub struct RelayAlone {
    relay: Arc<Relay>,
    metrics_server: Option<Server>,
    metrics_address: Option<SocketAddr>,
    config: Config,
}

impl RelayAlone {
    /// Prepares the relay and binds the address of the metrics. The database must be up to date.
    ///
    /// # Errors
    /// [`StartError::Bind`], displayed as one line. Two processes of one host need two addresses.
    pub fn build(config: Config) -> Result<RelayAlone, StartError> {
        let pool = Pool::single(&config.database, config.pool_timeout);
        let used = pool.clone();
        let metrics = web::Data::new(Metrics::new(move || connections_of(used.usage())));
        let relay = Arc::new(Relay::new(&config, pool, metrics.clone().into_inner()));
        let (metrics_server, metrics_address) =
            config.metrics_bind.map(|bind| serve_metrics(bind, metrics)).transpose()?.unzip();
        Ok(RelayAlone { relay, metrics_server, metrics_address, config })
    }

    /// The address of the metrics, where they are on.
    #[must_use]
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_address
    }

    /// Brings orders to the ERP until SIGTERM or SIGINT; attempts under way end first.
    ///
    /// # Errors
    /// An error of the system.
    pub async fn run(self) -> io::Result<()> {
        let metrics = self.metrics_server.map(|server| (server.handle(), rt::spawn(server)));
        let relaying = Relaying::start(self.relay);
        stop_signal().await?;
        relaying.stop(self.config.drain).await;
        // What the last attempts came to can be read until here.
        if let Some((handle, serving)) = metrics {
            handle.stop(false).await;
            serving.await.map_err(io::Error::other)??;
        }
        Ok(())
    }
}
