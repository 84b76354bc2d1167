//! Constants of the scheduler. Figures are for two connected processes on one machine unless stated otherwise.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Default limit of one spin: about the time to fall asleep and to be woken.
pub(crate) const SPIN_MAX: Duration = Duration::from_micros(30);
/// A connection spins only if its last two reads were closer than this.
pub(crate) const GAP_MAX: Duration = Duration::from_micros(150);
/// A connection spins up to this many bytes since the last idle moment. Larger messages arrive in pieces, and earlier
/// reads would only make the pieces smaller.
pub(crate) const MOVED_LEN_MAX: usize = 24 * 1024;
/// Bytes counted for a large message that is incomplete.
pub(crate) const LARGE_LEN: usize = 64 * 1024;
/// Fraction by which the recent maximum of moved bytes shrinks at each idle moment: 1/8.
pub(crate) const MOVED_LEN_DECAY: usize = 8;
/// A connection with fewer reads than this is new and may be short-lived: it does not spin.
pub(crate) const NEW_READS: u32 = 8;
/// Sleeps without a spin after a wasted one, doubled by each further one. With 4,096, a load that never benefits loses
/// one processor in some thousands.
pub(crate) const SKIPPED: RangeInclusive<u32> = 4..=4096;
/// Tries of a spin for each poll of the runtime, which costs about a microsecond, four times as much as a try. tokio's
/// own count of 61 tasks would be 61 tries.
pub(crate) const TRIES_PER_YIELD: u32 = 8;
/// Age of its last try at which a thread's poller is considered gone: its task may have moved to another thread.
pub(crate) const POLLER_STALE: Duration = Duration::from_micros(500);
/// Number of busy connections of a thread up to which each spins at its own socket, which finds a response sooner than
/// the runtime does. One poller for the thread makes 0.77 times as many calls with two connections of one call each,
/// 0.95 times with three, 0.97 with four, and 1.08 with eight.
pub(crate) const FEW_CONNECTIONS: usize = 3;
/// Idle moments of these connections without one of another, after which they count as the thread's only ones.
pub(crate) const FEW_CONNECTIONS_IDLES: u32 = 64;

/// Chunks of a batch that arrived while a connection slept. With 64 calls in flight, three chunks move 2.0 times as
/// many calls as no chunks, four 1.5 times, eight hardly more.
pub(crate) const CHUNKS: usize = 3;
/// Size of batches that are split: at least two empty calls, and less than nearly fills the read buffer. Full
/// streams and large messages fill it, and keep both ends busy anyway.
pub(crate) const BATCH_LEN: RangeInclusive<usize> = 48..=120 * 1024;
/// Consecutive polls of one connection after which its thread counts as having no other. With one poll, four
/// connections of 16 calls each lose a tenth.
pub(crate) const POLLS_IN_A_ROW: u32 = 16;

/// Reads in one poll of a driver before other tasks run.
pub(crate) const ROUNDS_MAX: usize = 16;
/// Rounds after which a poll of a driver reads the clock. Most polls never reach it.
pub(crate) const ROUNDS_UNTIMED: usize = 2;
/// Longest poll of a driver: other connections of its thread wait meanwhile.
pub(crate) const POLL_TIME_MAX: Duration = Duration::from_millis(1);
/// Bytes that a driver reads before it yields to the tasks that it has woken, while the bytes are in the processor's
/// cache.
pub(crate) const READ_LEN_MAX: usize = 192 * 1024;
/// One in 31 short polls is timed: reading the clock is a noticeable part of a poll that moves a call or two.
/// Odd: where each call takes a poll to write and one to read, both are sampled.
pub(crate) const SHORT_POLLS_PER_SAMPLE: u32 = 31;
/// Rounds of a short poll: one that moved something and one that did not.
pub(crate) const SHORT_POLL_ROUNDS_MAX: usize = 2;

/// Maximum time that a stream of requests holds messages back because their source yields, from its first yield on.
/// Some 5,000 empty messages are packed in this time, and packing more gains little.
pub(crate) const BATCH_DELAY_MAX: Duration = Duration::from_micros(50);
/// Number of times that `Pending` is trusted after a source twice in a row had nothing available; doubled each time. A
/// stream with one message in flight is checked once in 65 messages.
pub(crate) const TRUSTED: RangeInclusive<u8> = 4..=64;
