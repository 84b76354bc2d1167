//! What is called: one method, or a mix of flows of several steps.

use std::borrow::Cow;
use std::time::Duration;

use thalweg::channel::ChannelBuilder;
use thalweg::{Channel, Status};

use crate::arrivals::Random;
use crate::call::Call;

/// The state of a lane that is connected.
const READY: &str = "READY";

/// What is called, and at whom.
#[derive(Debug)]
pub struct Scenario {
    /// What results call it: a method's name, or that of a mix.
    pub name: String,
    /// Whom it is called at, for the result.
    pub targets: Vec<String>,
    /// Connections that are asked for, of all targets.
    pub connections: u32,
    /// Where the calls go: starts take turns at the targets.
    pub channels: Channels,
    /// One of them is chosen for each start.
    pub flows: Vec<Flow>,
    /// From which flows and times to think are drawn.
    pub seed: u64,
}

/// The channels of calls.
#[derive(Debug)]
pub enum Channels {
    /// Of each target: its workers take turns at them.
    Shared(Vec<Vec<Channel>>),
    /// Of each target: every call connects a channel of its own.
    PerCall(Vec<ChannelBuilder>),
}

/// Calls one after the other: what one user does.
#[derive(Debug)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// How often it is chosen, beside the weights of the others.
    pub weight: u32,
    /// A step begins when the one before it has gone well. After one that has not the flow ends.
    pub steps: Vec<Step>,
}

/// A call of a flow.
#[derive(Debug)]
pub struct Step {
    /// Its name in results.
    pub name: String,
    /// What is called.
    pub call: Call,
    /// How long nothing is done behind it.
    pub think: Option<Think>,
}

/// A time in which nothing is done: any between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// The shortest.
    pub least: Duration,
    /// The longest.
    pub most: Duration,
}

impl Scenario {
    /// Steps of all flows.
    pub fn steps(&self) -> impl Iterator<Item = (&Flow, &Step)> {
        self.flows.iter().flat_map(|flow| flow.steps.iter().map(move |step| (flow, step)))
    }

    /// Connections that take calls now.
    pub(crate) fn ready_connections(&self) -> u32 {
        let Channels::Shared(channels) = &self.channels else { return 0 };
        let lanes = channels.iter().flatten().flat_map(Channel::lanes);
        lanes.filter(|lane| lane.state == READY).count() as u32
    }

    /// Whether there is one call, and nothing else.
    pub(crate) fn is_one_call(&self) -> bool {
        matches!(&self.flows[..], [flow] if flow.steps.len() == 1)
    }

    /// The kind of its one call, or that it has several.
    pub(crate) fn kind(&self) -> &'static str {
        match self.steps().next() {
            Some((_, step)) if self.is_one_call() => step.call.kind.name(),
            _ => "scenario",
        }
    }

    /// How long each stream of its one call is to last.
    pub(crate) fn stream_for(&self) -> Option<Duration> {
        let (_, step) = self.steps().next().filter(|_| self.is_one_call())?;
        step.call.stream.lasts
    }

    /// Whether it has one call, whose streams last until the run ends.
    pub(crate) fn lasts_to_end(&self) -> bool {
        self.is_one_call() && self.steps().all(|(_, step)| step.call.stream.lasts_to_end)
    }

    /// The flow of this start, and the place of its first step among those of all flows. The same start has the same
    /// flow, whichever worker asks.
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

    /// Where the calls of a flow go. `start` counts those of this part of the load alone: the numbers of a part leave
    /// out those of the others.
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

    /// How long is thought behind the step at this place of the flow of this start.
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

/// Which of so many has this turn. Of as many turns each has one; but with which of them they begin is drawn each time,
/// so that what goes in turn beside it, such as requests, meets all of them.
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
    fn each_has_its_share_of_the_turns_and_meets_all_that_goes_in_turn_beside_it() {
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
