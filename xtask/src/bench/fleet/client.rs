//! The clients of a fleet.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use serde::Deserialize;

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
    /// `round_robin`; of tonic and the drop-in their own policy, the less loaded of two.
    Default,
    /// `round_robin`, and retries of calls that end with UNAVAILABLE.
    Retries,
    LeastRequest,
    /// `round_robin`, and a second attempt after 5 ms.
    Hedging,
}

impl Policy {
    /// The service config of clients that have one.
    fn service_config(self) -> &'static str {
        match self {
            Self::Default => r#"{"loadBalancingConfig":[{"round_robin":{}}]}"#,
            Self::Retries => {
                r#"{"loadBalancingConfig":[{"round_robin":{}}],
                "methodConfig":[{"name":[{}],"retryPolicy":{"maxAttempts":4,"initialBackoff":"0.1s",
                "maxBackoff":"1s","backoffMultiplier":2,"retryableStatusCodes":["UNAVAILABLE"]}}]}"#
            }
            Self::LeastRequest => r#"{"loadBalancingConfig":[{"least_request_experimental":{}}]}"#,
            Self::Hedging => {
                r#"{"loadBalancingConfig":[{"round_robin":{}}],
                "methodConfig":[{"name":[{}],"hedgingPolicy":{"maxAttempts":2,"hedgingDelay":"0.005s"}}]}"#
            }
        }
    }
}

/// A stack's client, with the command `fleet` of `peers/README.md`.
pub(super) struct Client {
    stack: &'static str,
    command: Job,
    policies: &'static [Policy],
}

impl Client {
    pub(super) fn new(peer: &BuiltPeer) -> Result<Self> {
        let (command, policies) = match peer.name {
            "thalweg" => {
                let example: PathBuf = rust::release_example("thalweg-load", "fleet")?;
                let all: &[_] = &[Policy::Default, Policy::Retries, Policy::LeastRequest, Policy::Hedging];
                (Job::new(example), all)
            }
            "grpc-go" => {
                let but_hedging: &[_] = &[Policy::Default, Policy::Retries, Policy::LeastRequest];
                (peer.command().words("fleet"), but_hedging)
            }
            "tonic" | "thalweg-tonic" => {
                let own: &[_] = &[Policy::Default];
                (peer.command().words("fleet"), own)
            }
            name => bail!("{name} has no client for a fleet"),
        };
        Ok(Self { stack: peer.name, command, policies })
    }

    pub(super) fn has(&self, policy: Policy) -> bool {
        self.policies.contains(&policy)
    }

    pub(super) fn name(&self, policy: Policy) -> String {
        let with = match policy {
            Policy::Default => return self.stack.to_owned(),
            Policy::Retries => "retries",
            Policy::LeastRequest => "least_request",
            Policy::Hedging => "hedging",
        };
        format!("{}, {with}", self.stack)
    }

    /// Starts calling the servers at `addresses`.
    pub(super) fn start(&self, addresses: &str, policy: Policy) -> Result<Calling> {
        let mut job = self.command.clone().arg(addresses).words("--seconds 86400 -c 16 --pause 1ms");
        if self.policies.len() > 1 {
            job = job.arg("--service-config").arg(policy.service_config());
        }
        let job = job.under(CLIENT);
        log::line(format_args!("$ {job} &"))?;
        let child = job.unbounded().stdout(Stdio::piped()).stderr(log::file()?).spawn()?;
        Ok(Calling { child, job })
    }
}

/// A client that calls.
pub(super) struct Calling {
    child: Child,
    job: Job,
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
    pub(super) p50_us: f64,
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
