//! Connections to the servers of a load.

use std::time::Duration;

use thalweg::channel::{ChannelBuilder, Lanes};
use thalweg_dynamic::metadata::{self, Entry};
use thalweg_dynamic::{Catalogue, Reflection, ReflectionLimits};

use super::error::SpecError;
use crate::connect::{channel_builder, connect, connect_all};
use crate::record::LaneRule;
use crate::scenario::Channels;

/// Connection settings.
#[expect(missing_debug_implementations, reason = "holds a function")]
pub struct Connecting<'a> {
    /// Servers. The first one is asked for its descriptors.
    pub targets: &'a [String],
    /// Connections to each target; of a balanced channel to each of its servers.
    pub connections: u32,
    /// Rule for the number of connections.
    pub lanes: LaneRule,
    /// Time limit of connecting, and of each reflection response.
    pub timeout: Duration,
    /// Value of `:authority`, instead of the target.
    pub authority: Option<&'a str>,
    /// Sets further options of channels, such as TLS.
    pub set_up: &'a dyn Fn(ChannelBuilder) -> ChannelBuilder,
}

impl Connecting<'_> {
    fn builder(&self, target: &str) -> ChannelBuilder {
        let builder = channel_builder(target).connect_timeout(self.timeout);
        let builder = match self.authority {
            Some(authority) => builder.authority(authority),
            None => builder,
        };
        (self.set_up)(builder)
    }

    /// Returns the method descriptors: from the files, or from the first server by reflection on a separate connection.
    ///
    /// # Errors
    ///
    /// Returns an error if the server cannot be connected to.
    pub async fn catalogue(
        &self,
        files: Option<Catalogue>,
        entries: &[Entry],
    ) -> Result<Catalogue, SpecError> {
        if let Some(files) = files {
            return Ok(files);
        }
        let target = self.targets.first().map(String::as_str).unwrap_or_default();
        let channel = connect(self.builder(target).lanes(Lanes::fixed(1)), target, self.timeout).await?;
        let limits = ReflectionLimits::with_response_timeout(self.timeout);
        Ok(Catalogue::Server(Box::new(Reflection::new(channel, metadata::map(entries), limits))))
    }

    /// Connects to each target.
    ///
    /// # Errors
    ///
    /// Returns an error if a server cannot be connected to.
    pub async fn channels(&self) -> Result<Channels, SpecError> {
        let (mut shared, mut builders) = (Vec::new(), Vec::new());
        for target in self.targets {
            let builder = self.builder(target);
            // Even with a channel per call, so that a missing server is reported before calls fail.
            shared.push(connect_all(&builder, target, self.lanes, self.connections, self.timeout).await?);
            builders.push(builder.lanes(Lanes::fixed(1)));
        }
        Ok(if self.lanes == LaneRule::PerCall {
            Channels::PerCall(builders)
        } else {
            Channels::Shared(shared)
        })
    }
}
