//! TLS arguments, named as curl's options.

use std::path::PathBuf;

use clap::Args;
use thalweg::channel::ChannelBuilder;
use thalweg::tls::{Certificate, ClientTlsConfig, Identity, PrivateKeyDer, ServerTlsConfig};

use crate::certs;
use crate::failure::Failure;

/// TLS of a server.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct ServerTlsArgs {
    /// Serve over TLS; without --cert, with a temporary certificate for localhost
    #[arg(long)]
    tls: bool,

    /// Certificate chain (PEM), reloaded when it changes; repeatable, with --key
    ///
    /// With several certificates, clients get the one for the name that they ask for, otherwise the first.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Vec<PathBuf>,

    /// Private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Vec<PathBuf>,

    /// Require client certificates issued by these CAs (PEM)
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
}

impl ServerTlsArgs {
    /// Returns the configuration, or `None` without TLS.
    pub(crate) fn config(&self) -> Result<Option<ServerTlsConfig>, Failure> {
        if self.cert.len() != self.key.len() {
            let (certs, keys) = (self.cert.len(), self.key.len());
            return Err(Failure::bad_arguments(format!(
                "{certs} --cert but {keys} --key; give each certificate its key, in the same order"
            )));
        }
        let mut identities =
            self.cert.iter().zip(&self.key).map(|(cert, key)| Identity::from_files(cert, key));
        let default = match identities.next() {
            Some(first) => first,
            None if self.tls || self.cacert.is_some() => of_this_run()?,
            None => return Ok(None),
        };
        let config = identities
            .fold(ServerTlsConfig::new().identity(default), ServerTlsConfig::identity_for_its_names);
        let config = match &self.cacert {
            Some(file) => config.client_ca_root(Certificate::from_file(file)),
            None => config,
        };
        // Does nothing without SSLKEYLOGFILE.
        Ok(Some(config.use_key_log()))
    }
}

fn of_this_run() -> Result<Identity, Failure> {
    let issued = certs::self_signed().map_err(Failure::failed)?;
    Ok(Identity::from_der(vec![issued.certificate], PrivateKeyDer::Pkcs8(issued.key.into())))
}

/// TLS of a client.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "TLS")]
pub(crate) struct ClientTlsArgs {
    /// Use TLS; implied by https://, grpcs:// and the options below
    #[arg(long)]
    tls: bool,

    /// Use no TLS (the default)
    #[arg(long, conflicts_with_all = ["tls", "cacert", "cert", "insecure", "servername"])]
    plaintext: bool,

    /// Trust these CA certificates (PEM) instead of the system's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    cacert: Option<PathBuf>,

    /// Client certificate chain (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,

    /// Private key of the client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,

    /// Skip verification of the server's certificate
    #[arg(long, alias = "skipTLS")]
    insecure: bool,

    /// Expected name in the server's certificate
    #[arg(long, alias = "cname", value_name = "NAME")]
    servername: Option<String>,
}

impl ClientTlsArgs {
    /// Adds a hint to a failure that one of these flags may have caused.
    pub(crate) fn explain(&self, mut failure: Failure) -> Failure {
        // In ghz `--insecure` means no TLS. Without certificate verification few handshakes fail for another reason.
        if self.insecure && failure.message.contains("TLS handshake") {
            failure.message +=
                "; if the server does not use TLS, leave out --insecure: plaintext is the default";
        }
        failure
    }

    /// Returns the channel with TLS if a flag requests it. If SSLKEYLOGFILE is set, secrets are written there.
    pub(crate) fn applied(&self, target: &str, channel: ChannelBuilder) -> ChannelBuilder {
        let has_key_log = std::env::var_os("SSLKEYLOGFILE").is_some();
        let is_asked_for = self.tls
            || has_key_log && ["https://", "grpcs://"].iter().any(|scheme| target.starts_with(scheme))
            || self.insecure
            || self.cacert.is_some()
            || self.cert.is_some()
            || self.servername.is_some();
        if !is_asked_for {
            return channel;
        }
        let mut config = ClientTlsConfig::new().use_key_log();
        if let Some(file) = &self.cacert {
            config = config.ca_certificate(Certificate::from_file(file));
        }
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            config = config.identity(Identity::from_files(cert, key));
        }
        if self.insecure {
            config = config.danger_accept_any_certificate();
        }
        if let Some(name) = &self.servername {
            config = config.domain_name(name);
        }
        channel.tls(config)
    }
}
