//! `round_robin`: calls go to the ready endpoints in turn.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use super::{Decision, EndpointView, Pick, PickArgs, Picker, Policy};

/// Connects all endpoints, and sends calls to the ready ones in turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin;

/// Positions of the ready endpoints; never empty.
#[derive(Clone, Debug)]
pub(super) struct InTurn(pub(super) Vec<usize>);

impl Policy for RoundRobin {
    fn name(&self) -> &'static str {
        "round_robin"
    }

    fn reconfigure(&mut self, settings: &dyn Any) -> bool {
        settings.is::<Self>()
    }

    fn decide(&mut self, endpoints: &[EndpointView<'_>], _: Instant) -> Decision {
        Decision::connecting_all(endpoints, |ready| Arc::new(InTurn(ready)))
    }
}

impl Picker for InTurn {
    fn pick(&self, call: &PickArgs<'_>) -> Pick {
        Pick::Endpoint(self.0[(call.turn % self.0.len() as u64) as usize])
    }
}
