//! Channels of calls.

use thalweg::channel::{ChannelBuilder, ConnectError, Lanes};
use thalweg::{Channel, Code};
use thalweg_load::channel_builder;

use super::arguments::CallArgs;
use super::timeline::Timeline;
use crate::balancing::Balancing;
use crate::failure::Failure;
use crate::keepalive::keepalive;
use crate::status;

/// A channel that is not connected yet.
pub(super) struct Connecting {
    pub(super) target: String,
    pub(super) timeline: Timeline,
    builder: ChannelBuilder,
}

impl Connecting {
    pub(super) fn new(target: &str, args: &CallArgs, balancing: &Balancing) -> Self {
        let timeline = Timeline::new();
        let recorded = timeline.clone();
        let mut builder = balancing
            .applied(channel_builder(target))
            .lanes(Lanes::fixed(1))
            .connect_timeout(args.connect_timeout)
            .on_connect_step(move |step| recorded.connecting(step));
        if let Some(authority) = &args.each.authority {
            builder = builder.authority(authority);
        }
        if let Some(user_agent) = &args.user_agent {
            builder = builder.user_agent(user_agent);
        }
        if let Some(time) = args.keepalive_time {
            builder = builder.keepalive(keepalive(time));
        }
        Self { target: target.to_owned(), timeline, builder: args.tls.applied(target, builder) }
    }

    pub(super) async fn connect(self) -> Result<Channel, Failure> {
        self.builder.connect().await.map_err(|error| match &error {
            // Same exit code as a call without a connection.
            ConnectError::Unavailable(_) => Failure {
                message: format!("UNAVAILABLE (14): {error}"),
                code: status::exit_code(Code::Unavailable),
            },
            _ => Failure::setting(error),
        })
    }
}
