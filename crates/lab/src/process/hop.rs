//! Hop between a driver and a server: adds delay and limits the rate, or watches the bytes.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use thalweg_link::{Link, LinkOptions, Rate, Stats};
use thalweg_measure::cpus::{CpuAssignment, CpuList};

use crate::load::{IdleGaps, WireTraffic};
use crate::study::ExecuteError;

/// Network between client and server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Network {
    /// Delay added to a round trip.
    pub(crate) round_trip: Duration,
    /// Rate limit in bits per second.
    pub(crate) rate: Option<NonZeroU64>,
}

/// Links to servers, each started on first use.
#[derive(Debug, Default)]
pub(super) struct Hops(Vec<(Network, Hop)>);

impl Hops {
    /// Returns the link to a server's address.
    pub(super) fn to(
        &mut self,
        target: &str,
        network: Network,
        cpus: &CpuAssignment,
    ) -> Result<Hop, ExecuteError> {
        // A restarted server listens elsewhere.
        let known = self.0.iter().find(|(of, hop)| *of == network && hop.to == target);
        if let Some((_, hop)) = known {
            return Ok(hop.clone());
        }
        let hop = Hop::start(target, network, cpus).map_err(ExecuteError::Window)?;
        self.0.push((network, hop.clone()));
        Ok(hop)
    }
}

/// A link to one server, closed when the last clone is dropped.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    link: Arc<Link>,
    /// Address of the server.
    to: String,
}

impl Hop {
    /// Starts the link on processors that neither side uses, if there are any.
    fn start(to: &str, Network { round_trip, rate }: Network, cpus: &CpuAssignment) -> Result<Self, String> {
        let bytes = rate.and_then(|bits| NonZeroU64::new(bits.get() / 8));
        let rate = bytes.map(Rate::from_bytes_per_second);
        let start_error =
            |error: &dyn std::fmt::Display| format!("failed to set up the network to {to}: {error}");
        let address = to.parse().map_err(|error| start_error(&error))?;
        let listen = "127.0.0.1:0".parse().map_err(|error| start_error(&error))?;
        let options = LinkOptions::new(listen, address).delay(round_trip / 2).rate(rate);
        // A thread inherits the CPU affinity of the thread that starts it.
        let started = thread::scope(|scope| {
            let start = || {
                if let Some(cpus) = spare(cpus) {
                    // Failure to pin is harmless, though the link may be disturbed.
                    let _ = cpus.pin_this_thread();
                }
                Link::start(options)
            };
            scope.spawn(start).join()
        });
        match started {
            Ok(Ok(link)) => Ok(Self { link: Arc::new(link), to: to.to_owned() }),
            Ok(Err(error)) => Err(start_error(&error)),
            Err(_) => Err(start_error(&"the thread that starts it panicked")),
        }
    }

    /// Returns the link's own address.
    pub(super) fn target(&self) -> String {
        self.link.address().to_string()
    }

    /// Resets the statistics when measuring begins.
    pub(super) fn reset(&self) {
        self.link.reset_stats();
    }

    /// Returns the traffic since then.
    pub(super) fn traffic(&self) -> WireTraffic {
        wire(&self.link.stats())
    }
}

/// Returns processors that neither side is pinned to.
fn spare(cpus: &CpuAssignment) -> Option<CpuList> {
    let available = CpuList::available().ok()?;
    available.without(cpus.client_cpus.as_ref()?)?.without(cpus.server_cpus.as_ref()?)
}

fn wire(stats: &Stats) -> WireTraffic {
    WireTraffic {
        watched_ns: stats.window_ns,
        all: idle(&stats.wire),
        each: idle(&stats.per_connection),
        sent_bytes: stats.up.bytes,
        received_bytes: stats.down.bytes,
        hop_busy_share: stats.thread.busy_share,
    }
}

fn idle(idle: &thalweg_link::Idle) -> IdleGaps {
    let gaps = &idle.gaps_ns;
    IdleGaps {
        share: idle.idle_share,
        gaps: gaps.count,
        p50_ns: gaps.p50,
        p90_ns: gaps.p90,
        p99_ns: gaps.p99,
        max_ns: gaps.max,
        buckets: gaps.buckets.clone(),
    }
}
