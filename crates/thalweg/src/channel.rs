//! gRPC channels: [`Channel`].

mod builder;
mod handle;

pub use builder::ChannelBuilder;
pub use handle::Channel;
pub use thalweg_engine::{
    Backoff, ConnectError, ConnectStep, LaneSnapshot, Lanes, ServiceConfigError, TargetError,
};
