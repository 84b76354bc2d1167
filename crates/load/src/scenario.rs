//! What is called: one method, or a mix of flows of several steps.

use std::time::Duration;

use thalweg::Channel;

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
    /// Workers take turns at these.
    pub channels: Vec<Channel>,
    /// One of them is chosen for each start.
    pub flows: Vec<Flow>,
    /// From which flows and times to think are drawn.
    pub seed: u64,
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
        let lanes = self.channels.iter().flat_map(Channel::lanes);
        lanes.filter(|lane| lane.state == READY).count() as u32
    }

    /// The kind of its one call, or that it has several.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.flows[..] {
            [Flow { steps, .. }] if steps.len() == 1 => steps[0].call.kind.name(),
            _ => "scenario",
        }
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
