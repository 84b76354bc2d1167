//! Calls of a run: one method, or a mix of flows with several steps.

use std::borrow::Cow;
use std::time::Duration;

use thalweg::channel::ChannelBuilder;
use thalweg::{Channel, Status};

use crate::arrivals::Random;
use crate::call::Call;
use crate::record::LaneRule;

/// State of a connected lane.
const READY: &str = "READY";

/// Calls and their targets.
#[derive(Debug)]
pub struct Scenario {
    /// Name in results: that of the method or the mix.
    pub name: String,
    /// Targets, for the result.
    pub targets: Vec<String>,
    /// Requested connections to all targets.
    pub connections: u32,
    /// Rule for the number of connections.
    pub lanes: LaneRule,
    /// Channels of the calls; starts use the targets in turn.
    pub channels: Channels,
    /// Flows, one of which is chosen for each start.
    pub flows: Vec<Flow>,
    /// Seed of the choice of flows and think times.
    pub seed: u64,
}

/// Channels of calls.
#[derive(Debug)]
pub enum Channels {
    /// Channels of each target, used in turn by its workers.
    Shared(Vec<Vec<Channel>>),
    /// Builder for each target; every call connects its own channel.
    PerCall(Vec<ChannelBuilder>),
}

/// A sequence of calls, as made by one user.
#[derive(Debug)]
pub struct Flow {
    /// Name.
    pub name: String,
    /// Relative frequency among all flows.
    pub weight: u32,
    /// Steps in order. A step starts when the previous one has succeeded; a failed step ends the flow.
    pub steps: Vec<Step>,
}

/// A call of a flow.
#[derive(Debug)]
pub struct Step {
    /// Name in results.
    pub name: String,
    /// The call.
    pub call: Call,
    /// Think time after the step.
    pub think: Option<Think>,
}

/// A random think time between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// Minimum.
    pub least: Duration,
    /// Maximum.
    pub most: Duration,
}

impl Scenario {
    /// Returns the steps of all flows.
    pub fn steps(&self) -> impl Iterator<Item = (&Flow, &Step)> {
        self.flows.iter().flat_map(|flow| flow.steps.iter().map(move |step| (flow, step)))
    }

    /// Returns whether its calls may go to several servers. Each call then notes its own.
    pub(crate) fn has_several_servers(&self) -> bool {
        let Channels::Shared(channels) = &self.channels else { return true };
        let is_one =
            |channel: &Channel| matches!(&channel.snapshot().endpoints[..], [only] if only.addresses <= 1);
        channels.len() > 1 || !channels.iter().flatten().all(is_one)
    }

    /// Returns the connections that now accept calls.
    pub(crate) fn ready_connections(&self) -> u32 {
        let Channels::Shared(channels) = &self.channels else { return 0 };
        let lanes = channels.iter().flatten().flat_map(Channel::lanes);
        lanes.filter(|lane| lane.state == READY).count() as u32
    }

    /// Returns whether there is only one call.
    pub(crate) fn is_one_call(&self) -> bool {
        matches!(&self.flows[..], [flow] if flow.steps.len() == 1)
    }

    /// Returns the kind of its only call, or `scenario`.
    pub(crate) fn kind(&self) -> &'static str {
        match self.steps().next() {
            Some((_, step)) if self.is_one_call() => step.call.kind.name(),
            _ => "scenario",
        }
    }

    /// Returns the duration of each stream of its only call.
    pub(crate) fn stream_for(&self) -> Option<Duration> {
        let (_, step) = self.steps().next().filter(|_| self.is_one_call())?;
        step.call.stream.lasts
    }

    /// Returns whether it has only one call, whose streams last until the run ends.
    pub(crate) fn lasts_to_end(&self) -> bool {
        self.is_one_call() && self.steps().all(|(_, step)| step.call.stream.lasts_to_end)
    }

    /// Returns the flow of a start, and the index of its first step among all steps. The flow depends on the start
    /// only, not on the worker.
    pub(crate) fn flow_of(&self, number: u64) -> (usize, &Flow) {
        if let [only] = &self.flows[..] {
            return (0, only);
        }
        let all = self.flows.iter().map(|flow| u64::from(flow.weight)).sum::<u64>().max(1);
        let mut drawn = self.random(number, 0).next() % all;
        let mut before = 0;
        for flow in &self.flows {
            match drawn.checked_sub(u64::from(flow.weight)) {
                None => return (before, flow),
                Some(left) => drawn = left,
            }
            before += flow.steps.len();
        }
        unreachable!("one is drawn below the sum of all weights, and a scenario has flows")
    }

    /// Returns the channel for the calls of a flow. `start` counts only the starts of this part of the load, as the
    /// numbers of a part skip those of the others.
    pub(crate) fn channel(&self, start: u64, worker: usize) -> Result<Cow<'_, Channel>, Status> {
        match &self.channels {
            Channels::Shared(targets) => {
                let of_target = &targets[turn(start, targets.len())];
                Ok(Cow::Borrowed(&of_target[worker % of_target.len()]))
            }
            Channels::PerCall(builders) => {
                let builder = builders[turn(start, builders.len())].clone();
                let channel = builder.connect_lazy().map_err(|error| Status::internal(error.to_string()))?;
                Ok(Cow::Owned(channel))
            }
        }
    }

    /// Returns the think time after the step at this place of the flow.
    pub(crate) fn think(&self, think: Think, number: u64, place: usize) -> Duration {
        let span = think.most.saturating_sub(think.least);
        think.least + span.mul_f64(self.random(number, place as u64 + 1).unit())
    }

    fn random(&self, number: u64, place: u64) -> Random {
        Random(
            self.seed
                ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
                ^ place.wrapping_mul(0xd1b5_4a32_d192_ed03),
        )
    }
}

/// Chooses one of `of` for this turn. Each is chosen once in `of` turns, in an order that is rotated at random each
/// time. So it meets every value of others that go in turn, such as requests.
fn turn(number: u64, of: usize) -> usize {
    if of <= 1 {
        return 0;
    }
    let of = of as u64;
    ((number % of + Random(number / of).next() % of) % of) as usize
}

#[cfg(test)]
mod tests {
    use super::turn;

    #[test]
    fn turns_are_even_and_uncorrelated_with_other_cycles() {
        for of in 1..6 {
            for block in 0..1000 {
                let mut seen: Vec<usize> =
                    (0..of as u64).map(|place| turn(block * of as u64 + place, of)).collect();
                seen.sort_unstable();
                assert_eq!(seen, (0..of).collect::<Vec<_>>(), "block {block} of {of}");
            }
            for requests in 1..9 {
                let mut met = vec![vec![0; of]; requests];
                (0..10_000).for_each(|number| met[number % requests][turn(number as u64, of)] += 1);
                let least = met.iter().flatten().min().copied().unwrap_or(0);
                assert!(least * 2 > 10_000 / (of * requests), "{of} beside {requests}: {met:?}");
            }
        }
    }
}
