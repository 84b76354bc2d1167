//! gRPC's admin services in one: [gRFC A38].
//!
//! They tell what the whole process does, of all its servers and channels. So they belong on a server of their own,
//! that listens on a loopback address or a UNIX socket:
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

/// All admin services that there are: channelz. (The other one that A38 names, CSDS, tells of xDS, which Thalweg does
/// not speak.)
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct AdminServices;

impl AdminServices {
    /// Of this process.
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
