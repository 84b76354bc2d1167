//! Connections to the servers of a load, and what is known of their methods.

use std::time::Duration;

use thalweg::Channel;
use thalweg::channel::{ChannelBuilder, ConnectError, Lanes};
use thalweg_dynamic::{Catalogue, Reflection, ReflectionLimits};
use thalweg_load::Channels;
use thalweg_load::peer::shares;
use thalweg_load::record::LaneRule;

use crate::failure::Failure;
use crate::metadata::{self, Entry};

/// How servers are connected to.
pub(super) struct Connecting<'a> {
    /// The first one is asked for its descriptors.
    pub(super) targets: &'a [String],
    /// Connections to each.
    pub(super) connections: u32,
    /// Rule for the number of connections.
    pub(super) lanes: LaneRule,
    /// Of connecting, and of each answer of reflection.
    pub(super) timeout: Duration,
    pub(super) authority: Option<&'a str>,
    pub(super) set_up: &'a dyn Fn(ChannelBuilder) -> ChannelBuilder,
}

impl Connecting<'_> {
    fn builder(&self, target: &str) -> ChannelBuilder {
        let builder = Channel::builder(target).connect_timeout(self.timeout);
        let builder = match self.authority {
            Some(authority) => builder.authority(authority),
            None => builder,
        };
        (self.set_up)(builder)
    }

    /// What declares methods: the files, or the first server's reflection, on a connection of its own.
    pub(super) async fn catalogue(
        &self,
        files: Option<Catalogue>,
        entries: &[Entry],
    ) -> Result<Catalogue, Failure> {
        if let Some(files) = files {
            return Ok(files);
        }
        let target = self.targets.first().map(String::as_str).unwrap_or_default();
        let channel = connect(self.builder(target).lanes(Lanes::fixed(1))).await?;
        let limits = ReflectionLimits::with_response_timeout(self.timeout);
        Ok(Catalogue::Server(Box::new(Reflection::new(channel, metadata::map(entries), limits))))
    }

    /// The channels of calls, of each target.
    pub(super) async fn channels(&self) -> Result<Channels, Failure> {
        if self.lanes == LaneRule::PerCall {
            let one = |target: &String| self.builder(target).lanes(Lanes::fixed(1));
            let builders: Vec<ChannelBuilder> = self.targets.iter().map(one).collect();
            // Whether a server is there is said before calls fail.
            for builder in &builders {
                connect(builder.clone()).await?;
            }
            return Ok(Channels::PerCall(builders));
        }
        let mut channels = Vec::new();
        for target in self.targets {
            let mut of_target = Vec::new();
            for lanes in shares(self.connections) {
                let is_adaptive = self.lanes == LaneRule::Adaptive;
                let lanes = if is_adaptive { Lanes::adaptive() } else { Lanes::fixed(lanes as usize) };
                of_target.push(connect(self.builder(target).lanes(lanes)).await?);
            }
            channels.push(of_target);
        }
        Ok(Channels::Shared(channels))
    }
}

async fn connect(builder: ChannelBuilder) -> Result<Channel, Failure> {
    builder.connect().await.map_err(|error| match &error {
        ConnectError::Unavailable(_) => Failure::failed(error),
        _ => Failure::bad_arguments(error),
    })
}
