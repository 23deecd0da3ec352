//! A certificate of the tests' own: no client trusts it, unless it is told to.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tempfile::TempDir;

/// A certificate for this machine, signed by itself, and what a server needs to show it.
pub struct Identity {
    server: Arc<ServerConfig>,
    home: TempDir,
}

impl Identity {
    /// A new one.
    pub fn signed_by_itself() -> Self {
        // Another part of the process may have chosen a provider already; that one serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("an address can be certified");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("it was made a line ago");
        let server = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key);
        let home = tempfile::Builder::new().prefix("orders-tls-").tempdir().expect("a directory for the certificate");
        let identity = Self { server: Arc::new(server.expect("the key is the certificate's")), home };
        let mut file = File::create(identity.certificate()).expect("the directory is ours");
        file.write_all(made.cert.pem().as_bytes()).expect("the file is ours");
        identity
    }

    /// The file of the certificate: who takes it for a root trusts the server.
    pub fn certificate(&self) -> PathBuf {
        self.home.path().join("certificate.pem")
    }

    /// What a server needs.
    pub fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }
}
