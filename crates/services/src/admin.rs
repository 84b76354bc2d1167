//! gRPC admin services: [gRFC A38].
//!
//! They expose activity of the whole process, with all servers and channels. Serve them separately on a loopback
//! address or Unix socket:
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use thalweg_services::admin::AdminServices;
//!
//! let admin = thalweg::Server::builder()
//!     .add_service(AdminServices::new())
//!     .bind(&["127.0.0.1:50052".parse()?])
//!     .await?;
//! tokio::spawn(admin.serve());
//! # Ok(()) }
//! ```
//!
//! [gRFC A38]: https://github.com/grpc/proposal/blob/master/A38-admin-interface-api.md

use thalweg::server::{Methods, Service};

use crate::channelz::ChannelzService;

/// All available admin services: channelz. CSDS, the other one in A38, is for xDS, which Thalweg does not support.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct AdminServices;

impl AdminServices {
    /// Creates the admin services of this process.
    pub fn new() -> Self {
        Self
    }
}

impl Service for AdminServices {
    const NAME: &'static str = ChannelzService::NAME;

    fn register(self, methods: &mut Methods<'_>) {
        ChannelzService::new().register(methods);
    }
}
