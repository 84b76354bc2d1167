//! TLS of servers, with tonic's API.

use std::fmt;
use std::time::Duration;

use thalweg_engine::server::ServerConfig;
use thalweg_engine::tls as engine;

use crate::transport::error::Error;
use crate::transport::tls::{Certificate, Identity};

/// TLS settings of a server: its identity, and the clients it accepts.
#[derive(Clone, Default)]
pub struct ServerTlsConfig {
    identity: Option<Identity>,
    client_authority: Option<Certificate>,
    is_client_auth_optional: bool,
    ignores_client_order: bool,
    logs_keys: bool,
    timeout: Option<Duration>,
}

impl ServerTlsConfig {
    /// Creates a configuration that requests no client certificates. It needs an [`identity`](Self::identity).
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the server's certificate and key.
    pub fn identity(self, identity: Identity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// Accepts only clients with a certificate issued by one of these authorities (mTLS).
    pub fn client_ca_root(self, cert: Certificate) -> Self {
        Self { client_authority: Some(cert), ..self }
    }

    /// Also accepts clients without a certificate; presented certificates are still verified. Off by default; for
    /// servers with a [`client_ca_root`](Self::client_ca_root).
    pub fn client_auth_optional(self, optional: bool) -> Self {
        Self { is_client_auth_optional: optional, ..self }
    }

    /// Chooses the cipher suite by the server's order instead of the client's; off by default.
    pub fn ignore_client_order(self, ignore_client_order: bool) -> Self {
        Self { ignores_client_order: ignore_client_order, ..self }
    }

    /// Writes each connection's secrets to the file named by the environment variable `SSLKEYLOGFILE`; off by default.
    pub fn use_key_log(self) -> Self {
        Self { logs_keys: true, ..self }
    }

    /// Sets the time limit of a handshake; 10 s by default. On expiry the connection is closed.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Converts to the engine's configuration; validates certificates and keys.
    pub(super) fn into_engine(self) -> Result<engine::ServerTlsConfig, Error> {
        let mut config = engine::ServerTlsConfig::new()
            .client_auth_optional(self.is_client_auth_optional)
            .ignore_client_order(self.ignores_client_order);
        if let Some(identity) = &self.identity {
            config = config.identity(identity.to_engine());
        }
        if let Some(authority) = &self.client_authority {
            config = config.client_ca_root(authority.to_engine());
        }
        if let Some(timeout) = self.timeout {
            config = config.timeout(timeout);
        }
        if self.logs_keys {
            config = config.use_key_log();
        }
        ServerConfig::default().set_tls(config.clone()).map_err(Error::transport)?;
        Ok(config)
    }
}

impl fmt::Debug for ServerTlsConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerTlsConfig").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;
    use crate::transport::Server;
    use crate::transport::tls::tests::pair;

    #[test]
    fn invalid_tls_config_is_an_error() {
        let check = |config: ServerTlsConfig, expected: Result<(), &str>| match (
            Server::builder().tls_config(config),
            expected,
        ) {
            (Ok(_), Ok(())) => {}
            (Err(error), Err(part)) => {
                assert_eq!(error.to_string(), "transport error");
                assert!(error.source().unwrap().to_string().contains(part), "{error:?}");
            }
            (server, expected) => panic!("{server:?}, not {expected:?}"),
        };
        let (certificate, key) = pair();
        let identity = || ServerTlsConfig::new().identity(Identity::from_pem(&certificate, &key));
        check(identity(), Ok(()));
        check(ServerTlsConfig::new(), Err("set an identity"));
        check(identity().client_ca_root(Certificate::from_pem(&certificate)), Ok(()));
        check(identity().client_ca_root(Certificate::from_pem(&key)), Err("swapped"));
        check(ServerTlsConfig::new().identity(Identity::from_pem(&certificate, "")), Err("no private key"));
    }

    #[test]
    fn settings_reach_the_engine() {
        let (certificate, key) = pair();
        let identity = || ServerTlsConfig::new().identity(Identity::from_pem(&certificate, &key));
        let engine_config = |config: ServerTlsConfig| format!("{:?}", config.into_engine().unwrap());
        let authority = || Certificate::from_pem(&certificate);
        for (config, part) in [
            (identity(), "client_authorities: []"),
            (identity().client_ca_root(authority()), "client_authorities: [Certificate"),
            (
                identity().client_ca_root(authority()).client_auth_optional(true),
                "is_client_auth_optional: true",
            ),
            (identity().ignore_client_order(true), "ignores_client_order: true"),
            (identity().use_key_log(), "logs_keys: true"),
            (identity().timeout(Duration::from_secs(7)), "timeout: 7s"),
        ] {
            assert!(engine_config(config.clone()).contains(part), "{}", engine_config(config));
        }
    }
}
