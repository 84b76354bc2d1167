//! Connections for protocols other than HTTP/2.

use thalweg_balance::Address;
use tokio::time::timeout;

use super::addresses::{Addresses, Step};
use super::connecting::{ByteStream, Transport};
use super::refusal::refused;
#[cfg(feature = "tls")]
use crate::status::Code;
use crate::status::Status;
#[cfg(feature = "tls")]
use crate::tls::{BufferMemory, ClientTls};

/// Connects like a channel, and returns the byte stream.
#[derive(Debug)]
pub(crate) struct Dialer {
    /// The timeout is for one attempt over all addresses, from name resolution to the end of the TLS handshake.
    pub(crate) addresses: Addresses,
    pub(crate) transport: Transport,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<ClientTls>,
}

impl Dialer {
    /// Connects, with TLS if the target has it, and HTTP/1.1 by ALPN.
    ///
    /// # Errors
    /// UNAVAILABLE, with the reason.
    pub(crate) async fn connect(&self) -> Result<Box<dyn ByteStream>, Status> {
        let addresses = &self.addresses;
        if let Transport::Custom { dial, takes_address: false, .. } = &self.transport {
            let step = Step::default();
            let connecting = async {
                let stream = dial(None).await.map_err(|error| refused(&addresses.target, &error))?;
                self.secure(stream, &addresses.target, &step).await
            };
            let outcome = timeout(addresses.timeout, connecting).await;
            return outcome.unwrap_or_else(|_| Err(addresses.timed_out(&step.missing(&"the other end"))));
        }
        let attempt = |address: Address, step: Step| async move {
            let refused = |error| refused(&address, &error);
            let stream: Box<dyn ByteStream> = match &self.transport {
                Transport::Custom { dial, .. } => dial(Some(&address)).await.map_err(refused)?,
                Transport::Sockets(sockets) => {
                    let socket = sockets.connect(&address).await?.watch().map_err(refused)?;
                    #[cfg(feature = "tls")]
                    match sockets.secure_tunnel(&address) {
                        Some(tunnel) => Box::new(tunnel.open(socket).await?),
                        None => Box::new(socket),
                    }
                    #[cfg(not(feature = "tls"))]
                    Box::new(socket)
                }
            };
            step.set(Step::CONNECTED);
            self.secure(stream, &address, &step).await
        };
        addresses.first_to_connect(self.transport.tcp(), attempt, || (), |outcome| outcome).await
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
        let stream =
            connected.map_err(|error| Status::local(Code::Unavailable, format!("{peer}: {error}")))?;
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
