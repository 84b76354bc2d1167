//! The clients of a fleet.

use std::io::Read;
use std::process::{Child, Stdio};

use serde::Deserialize;

use super::servers::{Backend, Fleet, Third};
use crate::bench::pair::CLIENT;
use crate::failure::Result;
use crate::job::Job;
use crate::log;
use crate::peers::BuiltPeer;
use crate::server::terminate;
use crate::test::rust;

/// Balancing policy and retries of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// Stands for the own policy of tonic and thalweg-tonic, the less loaded of two.
    RoundRobin,
    /// `round_robin`, and retries of calls that end with UNAVAILABLE.
    Retries,
    WeightedRoundRobin,
    LeastRequest,
    PickFirst,
    /// `round_robin`, and a second attempt after 5 ms.
    Hedging,
    /// `round_robin` over servers that fail less than 30 % of their calls.
    OutlierDetection,
}

impl Policy {
    const ALL: &[Self] = &[
        Self::RoundRobin,
        Self::Retries,
        Self::WeightedRoundRobin,
        Self::LeastRequest,
        Self::PickFirst,
        Self::Hedging,
        Self::OutlierDetection,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::RoundRobin => "round_robin",
            Self::Retries => "round_robin, retries",
            Self::WeightedRoundRobin => "weighted_round_robin",
            Self::LeastRequest => "least_request",
            Self::PickFirst => "pick_first",
            Self::Hedging => "round_robin, hedging",
            Self::OutlierDetection => "round_robin, outlier detection",
        }
    }

    /// The service config of clients that have one.
    fn service_config(self) -> &'static str {
        match self {
            Self::RoundRobin => r#"{"loadBalancingConfig":[{"round_robin":{}}]}"#,
            Self::Retries => {
                r#"{"loadBalancingConfig":[{"round_robin":{}}],
                "methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":4,"initialBackoff":"0.1s",
                "maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]}"#
            }
            Self::WeightedRoundRobin => r#"{"loadBalancingConfig":[{"weighted_round_robin":{}}]}"#,
            Self::LeastRequest => r#"{"loadBalancingConfig":[{"least_request_experimental":{}}]}"#,
            Self::PickFirst => r#"{"loadBalancingConfig":[{"pick_first":{}}]}"#,
            Self::Hedging => {
                r#"{"loadBalancingConfig":[{"round_robin":{}}],
                "methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":2,"hedgingDelay":"0.005s"}}]}"#
            }
            // grpc-go has no default for the enforcement, against gRFC A50.
            Self::OutlierDetection => {
                r#"{"loadBalancingConfig":[{"outlier_detection_experimental":{"interval":"1s",
                "failurePercentageEjection":{"threshold":30,"minimumHosts":3,"requestVolume":50,
                "enforcementPercentage":100},"childPolicy":[{"round_robin":{}}]}}]}"#
            }
        }
    }
}

/// How a client finds the servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// By a list of their addresses.
    List,
    /// By a name with several addresses.
    Name,
    /// The same, and the packets to its first address are dropped.
    SilentName,
}

/// A stack's client, with the command `fleet` of `peers/README.md`.
pub(super) struct Client {
    stack: &'static str,
    command: Job,
    /// Those of its service config; empty if it has none.
    policies: Vec<Policy>,
    /// Only its restarts are measured. It has the engine of another client.
    pub(super) only_restarts: bool,
}

impl Client {
    /// Returns the clients of a peer.
    pub(super) fn of(peer: &BuiltPeer) -> Result<Vec<Self>> {
        let all = Policy::ALL.iter().copied();
        let client =
            |command: Job, policies| Self { stack: peer.name, command, policies, only_restarts: false };
        let fleet = || peer.command().words("fleet");
        Ok(match peer.name {
            "thalweg" => {
                vec![client(Job::new(rust::release_example("thalweg-load", "fleet")?), all.collect())]
            }
            "grpc-go" => vec![client(fleet(), all.filter(|policy| *policy != Policy::Hedging).collect())],
            "tonic" => vec![client(fleet(), Vec::new())],
            "thalweg-tonic" => {
                let by_config = client(fleet(), vec![Policy::RoundRobin, Policy::Retries]);
                vec![client(fleet(), Vec::new()), Self { only_restarts: true, ..by_config }]
            }
            name => bail!("{name} has no client for a fleet"),
        })
    }

    pub(super) fn has(&self, policy: Policy) -> bool {
        if self.policies.is_empty() { policy == Policy::RoundRobin } else { self.policies.contains(&policy) }
    }
}

/// Calls of a client with a policy.
#[derive(Clone, Copy)]
pub(super) struct Load<'c> {
    pub(super) client: &'c Client,
    pub(super) policy: Policy,
    pub(super) by: By,
    /// Pause of each caller after a call.
    pub(super) pause: &'static str,
}

impl Load<'_> {
    pub(super) fn name(&self) -> String {
        let stack = self.client.stack;
        let by = if self.by == By::List { "" } else { ", by name" };
        if self.client.policies.is_empty() {
            format!("{stack}{by}")
        } else {
            format!("{stack}, {}{by}", self.policy.name())
        }
    }

    /// Whether it calls all servers.
    pub(super) fn is_balanced(&self) -> bool {
        self.policy != Policy::PickFirst && (self.by == By::List || !self.client.policies.is_empty())
    }

    /// Starts calling the servers.
    pub(super) fn start(&self, fleet: &Fleet) -> Result<Calling> {
        let words = format!("--seconds 86400 -c 16 --pause {}", self.pause);
        let mut job = match self.by {
            By::List => self.client.command.clone().arg(fleet.addresses()),
            By::Name | By::SilentName => {
                let hosts = fleet.resolving(self.by == By::SilentName)?;
                self.client.command.clone().arg(fleet.name()).words("--name").within(hosts)
            }
        };
        let silent = (self.by == By::SilentName).then(|| fleet.silent()).transpose()?;
        job = job.words(&words);
        if !self.client.policies.is_empty() {
            job = job.arg("--service-config").arg(self.policy.service_config());
        }
        if fleet.third() == Third::FallsSilent {
            job = job.words("--keepalive 10s");
        }
        let job = job.under(CLIENT);
        log::line(format_args!("$ {job} &"))?;
        let child = job.unbounded().stdout(Stdio::piped()).stderr(log::file()?).spawn()?;
        Ok(Calling { child, job, _silent: silent })
    }
}

/// A client that calls.
pub(super) struct Calling {
    child: Child,
    job: Job,
    _silent: Option<Backend>,
}

impl Calling {
    /// Ends it after the calls in flight.
    pub(super) fn end(mut self) -> Result<Calls> {
        terminate(self.child.id())?;
        let mut text = String::new();
        if let Some(stdout) = &mut self.child.stdout {
            stdout.read_to_string(&mut text)?;
        }
        let status = self.child.wait()?;
        ensure!(status.success(), "`{}` failed: {status}", self.job);
        log::line(format_args!("{text}"))?;
        serde_json::from_str(&text).map_err(|why| failed!("`{}` printed no result: {why}", self.job))
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        // After a failed case its result does not matter, and otherwise it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The result of a client.
#[derive(Deserialize)]
pub(super) struct Calls {
    pub(super) ok: u64,
    pub(super) failed: u64,
    pub(super) failures: Vec<FailedCalls>,
    /// Calls that took longer than 1 s.
    pub(super) slow: u64,
    pub(super) p99_us: f64,
    pub(super) max_us: f64,
}

/// Failed calls with the same code.
#[derive(Deserialize)]
pub(super) struct FailedCalls {
    pub(super) code: String,
    pub(super) count: u64,
    /// Message of the first.
    pub(super) example: String,
}
