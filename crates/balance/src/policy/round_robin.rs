//! `round_robin`: calls go to the ready endpoints in turn.

use std::sync::Arc;
use std::time::Instant;

use super::{Decision, EndpointView, NoneReady, Pick, PickArgs, Picker, Policy, state_of};
use crate::endpoint::ConnectivityState;

/// Connects all endpoints, and sends calls to the ready ones in turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin;

/// Positions of the ready endpoints; never empty.
#[derive(Clone, Debug)]
struct Ready(Vec<usize>);

impl Policy for RoundRobin {
    fn name(&self) -> &'static str {
        "round_robin"
    }

    fn decide(&mut self, endpoints: &[EndpointView<'_>], _: Instant) -> Decision {
        let in_state = |state: ConnectivityState| {
            endpoints.iter().enumerate().filter(move |(_, view)| view.state == state).map(|(at, _)| at)
        };
        let ready: Vec<usize> = in_state(ConnectivityState::Ready).collect();
        let picker: Arc<dyn Picker> =
            if ready.is_empty() { Arc::new(NoneReady::of(endpoints)) } else { Arc::new(Ready(ready)) };
        let mut decision = Decision::new(picker, state_of(endpoints));
        decision.connect = in_state(ConnectivityState::Idle).collect();
        decision
    }
}

impl Picker for Ready {
    fn pick(&self, call: &PickArgs<'_>) -> Pick {
        Pick::Endpoint(self.0[(call.turn % self.0.len() as u64) as usize])
    }
}
