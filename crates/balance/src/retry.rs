//! Retries and hedging (gRFC A6): when a call gets another attempt.
//!
//! ```text
//!   attempt ends ──► Outcome { code, pushback, progress }
//!                        │ RetryState::on_outcome         │ HedgingState::on_outcome
//!                        ▼                                ▼
//!              Restart, Retry { at }, Stop      Continue, Restart, End { cancel }
//!
//!   response headers, or a full replay buffer ──commit──► no further attempts
//! ```
//!
//! One `RetryState` or `HedgingState` belongs to one call. [`Throttle`] and [`ReplayBudget`] are shared by the calls of
//! a channel. Messages stay with the engine, which asks `needs_replay` whether to keep those that it has sent.

mod attempt;
mod hedging;
mod replay;
mod sequential;
mod throttle;
mod untried;

pub use attempt::{HedgingPolicy, Outcome, Progress, Pushback, RetryPolicy};
pub use hedging::{HedgingDecision, HedgingState, HedgingStep};
pub use replay::{CALL_REPLAY_BYTES_MAX, CHANNEL_REPLAY_BYTES_MAX, ReplayAccount, ReplayBudget};
pub use sequential::{RetryDecision, RetryState, StopReason};
pub use throttle::Throttle;
pub use untried::prefer_untried;
