//! Connectors supplied by the application.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;

use http::Uri;
use hyper::rt;
use hyper_util::rt::TokioIo;
use thalweg_engine::ChannelConfig;
use tokio::sync::Mutex;
use tower::Service;

use crate::transport::error::BoxError;

/// Sets a connector that is called with `uri` for each connection, and again when one breaks.
pub(super) fn set_connector<C>(config: &mut ChannelConfig, connector: C, uri: &Uri)
where
    C: Service<Uri> + Send + 'static,
    C::Response: rt::Read + rt::Write + Send + Unpin + 'static,
    C::Future: Send,
    C::Error: Into<BoxError> + Send,
{
    let connector = Arc::new(Mutex::new(connector));
    let uri = uri.clone();
    config.set_connector(move || {
        let (connector, uri) = (Arc::clone(&connector), uri.clone());
        async move {
            let connecting = {
                // The lock keeps other tasks from using the readiness obtained here.
                let mut connector = connector.lock().await;
                poll_fn(|cx| connector.poll_ready(cx)).await.map_err(connection_refused)?;
                connector.call(uri)
            };
            connecting.await.map(TokioIo::new).map_err(connection_refused)
        }
    });
}

fn connection_refused(error: impl Into<BoxError>) -> io::Error {
    io::Error::other(error)
}
