//! Connections for other protocols than HTTP/2.

use std::time::Duration;

use tokio::time::timeout;

use super::addresses::{Addresses, Step};
use super::connecting::{ByteStream, Transport, refused};
use super::target::Target;
use crate::net::{Accepted, Endpoint};
use crate::status::Status;
#[cfg(feature = "tls")]
use crate::tls::{BufferMemory, ClientTls};

/// Connects like a channel, and returns the byte stream.
#[derive(Debug)]
pub(crate) struct Dialer {
    pub(crate) target: Target,
    pub(crate) transport: Transport,
    /// Timeout of one attempt over all addresses, from name resolution to the end of the TLS handshake.
    pub(crate) timeout: Duration,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<ClientTls>,
}

impl Dialer {
    /// Connects, with TLS if the target has it, and HTTP/1.1 by ALPN.
    ///
    /// # Errors
    /// UNAVAILABLE, with the reason.
    pub(crate) async fn connect(&self) -> Result<Box<dyn ByteStream>, Status> {
        let addresses = Addresses { target: &self.target, timeout: self.timeout };
        let tcp = match &self.transport {
            Transport::Sockets(tcp) => tcp,
            Transport::Custom { dial, .. } => {
                let step = Step::default();
                let connecting = async {
                    let stream = dial().await.map_err(|error| refused(&self.target, &error))?;
                    self.secure(stream, &self.target, &step).await
                };
                let outcome = timeout(self.timeout, connecting).await;
                return outcome.unwrap_or_else(|_| Err(addresses.timed_out(&step.missing(&"the other end"))));
            }
        };
        let attempt = |endpoint: Endpoint, step: Step| async move {
            let connected = async { Accepted::connect(&endpoint, tcp).await?.watch() };
            let socket = connected.await.map_err(|error| refused(&endpoint, &error))?;
            step.set(Step::CONNECTED);
            self.secure(Box::new(socket), &endpoint, &step).await
        };
        addresses.first_to_connect(tcp, attempt, || (), |outcome| outcome).await
    }

    #[cfg(feature = "tls")]
    async fn secure(
        &self,
        stream: Box<dyn ByteStream>,
        peer: &(impl std::fmt::Display + Sync),
        step: &Step,
    ) -> Result<Box<dyn ByteStream>, Status> {
        let Some(tls) = &self.tls else { return Ok(stream) };
        step.set(Step::SHAKING_HANDS);
        let connected = tls.connect_http1(stream, BufferMemory::default()).await;
        let stream = connected.map_err(|error| Status::unavailable(format!("{peer}: {error}")))?;
        Ok(Box::new(stream))
    }

    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unused_async, reason = "a handshake takes time")]
    async fn secure(
        &self,
        stream: Box<dyn ByteStream>,
        _: &(impl std::fmt::Display + Sync),
        _: &Step,
    ) -> Result<Box<dyn ByteStream>, Status> {
        Ok(stream)
    }
}
