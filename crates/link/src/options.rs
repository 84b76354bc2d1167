//! What a link is like.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::address::Address;
use crate::rate::Rate;

/// What a link is like. What is not said is a perfect network: no delay, no limit, nothing breaks.
///
/// ```
/// use std::time::Duration;
/// use thalweg_link::{Jitter, LinkOptions};
///
/// let options = LinkOptions::new("127.0.0.1:0".parse()?, "127.0.0.1:50051".parse()?)
///     .delay(Duration::from_millis(5))
///     .jitter(Jitter::Uniform(Duration::from_micros(500)))
///     .rate(Some("1gbit".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct LinkOptions {
    pub(crate) listen: Address,
    pub(crate) to: Address,
    pub(crate) path: Path,
    pub(crate) handshake: bool,
    pub(crate) seed: u64,
    pub(crate) spin: Duration,
    pub(crate) loss: Loss,
    pub(crate) stall: Option<StallPlan>,
}

/// What can be changed while a link runs.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) delay: Duration,
    pub(crate) jitter: Jitter,
    pub(crate) rate: Option<Rate>,
    /// As asked for.
    pub(crate) buffer: Option<usize>,
}

/// By how much the one-way time of a chunk differs from the delay. Drawn for each chunk; the order of a connection's
/// bytes is kept all the same, so a chunk may have to wait for the one before it. No one-way time is below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// Not at all.
    #[default]
    None,
    /// Up to so much less or more, all equally likely.
    Uniform(Duration),
    /// Normally distributed with this standard deviation, cut off at three of them.
    Normal(Duration),
}

impl Jitter {
    pub(crate) const DEVIATIONS_MAX: f64 = 3.0;

    /// What it adds at most.
    pub(crate) fn max(self) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Uniform(amplitude) => amplitude,
            Self::Normal(deviation) => deviation.mul_f64(Self::DEVIATIONS_MAX),
        }
    }

    /// As it was given.
    fn time(self) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Uniform(time) | Self::Normal(time) => time,
        }
    }

    /// Not more than a year, so that times can be added without a second thought.
    pub(crate) fn limited(self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Uniform(time) => Self::Uniform(time.min(TIME_MAX)),
            Self::Normal(time) => Self::Normal(time.min(TIME_MAX)),
        }
    }
}

/// How a connection is cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// Both ends see that it is reset (RST), at once, and what was under way is lost. On a UNIX socket an end sees the
    /// end of the stream, or a reset if the link held bytes of it that were not read yet.
    #[default]
    Reset,
    /// Nothing passes any more, and nobody is told: both ends are left half-open.
    Silent,
}

/// When connections are cut by themselves. Each connection counts for itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// So long after it was accepted.
    pub after: Option<Duration>,
    /// After so many bytes, of both directions together; the next one is not forwarded.
    pub after_bytes: Option<u64>,
    /// At random, after this time on average.
    pub every: Option<Duration>,
    /// How.
    pub how: Cut,
}

/// When the link stalls by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StallPlan {
    /// So long after the start.
    pub after: Duration,
    /// For how long; for good if not said.
    pub lasts: Option<Duration>,
    /// Again each time that this has passed since the last stall began.
    pub every: Option<Duration>,
}

/// What an unlimited link is taken to carry when its buffers are sized: 10 GB/s, more than loopback does through a
/// proxy.
const BANDWIDTH_UNLIMITED: u64 = 10_000_000_000;
/// The least that a direction of a connection may have under way: with no delay it is what one write brings.
const BUFFER_BYTES_MIN: usize = 1 << 20;
/// The most on a link that is not limited, if not asked for more: what 6.7 ms at 10 GB/s are.
const BUFFER_BYTES_MAX_UNLIMITED: usize = 64 << 20;
/// The most on a limited one: what 100 ms at 80 gbit are.
const BUFFER_BYTES_MAX: usize = 1 << 30;

impl Path {
    /// What a direction of a connection may have under way before the link stops to read from its sender.
    pub(crate) fn buffer_bytes(&self) -> usize {
        if let Some(buffer) = self.buffer {
            return buffer;
        }
        let time = self.delay + self.jitter.max();
        let Some(rate) = self.rate else {
            let under_way = u128::from(BANDWIDTH_UNLIMITED) * time.as_nanos() / 1_000_000_000;
            let under_way = usize::try_from(under_way).unwrap_or(usize::MAX);
            return under_way.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX_UNLIMITED);
        };
        let under_way = rate.bytes_in(time).saturating_add(rate.queue_bytes());
        // Small chunks cost more than their bytes.
        (2 * under_way.min(BUFFER_BYTES_MAX)).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX)
    }
}

impl LinkOptions {
    /// A perfect network from `listen`, where the link accepts connections, to `to`, where it opens one for each.
    pub fn new(listen: Address, to: Address) -> Self {
        Self {
            listen,
            to,
            path: Path { delay: Duration::ZERO, jitter: Jitter::None, rate: None, buffer: None },
            handshake: true,
            seed: 0,
            spin: Duration::ZERO,
            loss: Loss::default(),
            stall: None,
        }
    }

    /// The time of each byte from one end to the other: a round trip takes two of them.
    pub fn delay(mut self, one_way: Duration) -> Self {
        self.path.delay = one_way;
        self
    }

    /// By how much one-way times differ.
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.path.jitter = jitter;
        self
    }

    /// What each direction carries, all connections together. `None` (the default): as much as the machine can.
    pub fn rate(mut self, rate: Option<Rate>) -> Self {
        self.path.rate = rate;
        self
    }

    /// What a direction of a connection may have under way before the link stops to read from its sender; less than
    /// bandwidth × delay limits the bandwidth. The default is twice what the rate and the delay need, or 10 GB/s ×
    /// delay (at most 64 MiB) without a rate; at least 1 MiB.
    pub fn buffer(mut self, bytes: usize) -> Self {
        self.path.buffer = Some(bytes);
        self
    }

    /// Whether opening a connection takes a round trip, as TCP's handshake does (the default). The kernel accepts at
    /// once, so the time is taken from what follows: the first bytes of either side arrive when they would have after a
    /// handshake.
    pub fn handshake(mut self, handshake: bool) -> Self {
        self.handshake = handshake;
        self
    }

    /// From which jitter and random cuts are drawn.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// For the last bit before bytes are due, look at the clock instead of sleeping. Takes a processor for so long each
    /// time, and saves the time that it takes to wake up.
    pub fn spin(mut self, spin: Duration) -> Self {
        self.spin = spin;
        self
    }

    /// Connections are cut by themselves.
    pub fn loss_of_connection(mut self, loss: Loss) -> Self {
        self.loss = loss;
        self
    }

    /// The link stalls by itself.
    pub fn stall(mut self, plan: StallPlan) -> Self {
        self.stall = Some(plan);
        self
    }
}

impl LinkOptions {
    /// Which of the times is longer than a year, if one is.
    pub(crate) fn too_long(&self) -> Option<&'static str> {
        let Self { path, loss, stall, spin, .. } = self;
        let stall = stall.unwrap_or(StallPlan { after: Duration::ZERO, lasts: None, every: None });
        let times = [
            ("the delay", Some(path.delay)),
            ("the jitter", Some(path.jitter.time())),
            ("the spinning", Some(*spin)),
            ("the time until a connection is lost", loss.after.max(loss.every)),
            ("a time of the stall", Some(stall.after).max(stall.lasts).max(stall.every)),
        ];
        times.into_iter().find(|(_, time)| time.is_some_and(|time| time > TIME_MAX)).map(|(what, _)| what)
    }
}

/// A text that says nothing about a link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not {what}: write {how}")]
pub struct Misunderstood {
    text: String,
    what: &'static str,
    how: &'static str,
}

/// A year at the most, so that times can be added without a second thought.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// A duration as humantime reads it, up to a year.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    humantime::parse_duration(text.trim()).ok().filter(|duration| *duration <= TIME_MAX)
}

impl FromStr for Jitter {
    type Err = Misunderstood;

    fn from_str(text: &str) -> Result<Self, Misunderstood> {
        let parsed = match text.split_once(':') {
            None => duration(text).map(Self::Uniform),
            Some(("uniform", amplitude)) => duration(amplitude).map(Self::Uniform),
            Some(("normal", deviation)) => duration(deviation).map(Self::Normal),
            Some(_) => None,
        };
        let parsed = parsed.map(|jitter| if jitter.time().is_zero() { Self::None } else { jitter });
        parsed.ok_or_else(|| Misunderstood {
            text: text.to_owned(),
            what: "a jitter",
            how: "a duration such as 0.5ms, or normal:0.5ms for its standard deviation",
        })
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("0s"),
            Self::Uniform(amplitude) => write!(f, "{}", humantime::format_duration(*amplitude)),
            Self::Normal(deviation) => write!(f, "normal:{}", humantime::format_duration(*deviation)),
        }
    }
}

impl FromStr for Cut {
    type Err = Misunderstood;

    fn from_str(text: &str) -> Result<Self, Misunderstood> {
        match text.trim() {
            "reset" => Ok(Self::Reset),
            "silent" => Ok(Self::Silent),
            _ => Err(Misunderstood { text: text.to_owned(), what: "a way to cut", how: "reset or silent" }),
        }
    }
}

impl FromStr for Loss {
    type Err = Misunderstood;

    /// `after=10s`, `bytes=1000000`, `every=30s`, several of them with commas between; `silent` among them leaves both
    /// ends half-open.
    fn from_str(text: &str) -> Result<Self, Misunderstood> {
        let misunderstood = || Misunderstood {
            text: text.to_owned(),
            what: "a loss of connection",
            how: "after=10s, bytes=1000000 or every=30s (at random, on average), with `,silent` for no reset",
        };
        let positive = |time: Duration| (!time.is_zero()).then_some(time);
        let mut loss = Self::default();
        for part in text.split(',').map(str::trim) {
            let understood = match part.split_once('=') {
                Some(("after", time)) => duration(time).map(|time| loss.after = Some(time)),
                Some(("bytes", bytes)) => bytes.parse().ok().map(|bytes| loss.after_bytes = Some(bytes)),
                Some(("every", mean)) => {
                    duration(mean).and_then(positive).map(|mean| loss.every = Some(mean))
                }
                Some(_) => None,
                None => part.parse().ok().map(|how| loss.how = how),
            };
            understood.ok_or_else(misunderstood)?;
        }
        let says_when = loss.after.is_some() || loss.after_bytes.is_some() || loss.every.is_some();
        says_when.then_some(loss).ok_or_else(misunderstood)
    }
}

impl FromStr for StallPlan {
    type Err = Misunderstood;

    /// `after=10s`, `for=2s`, `every=30s`, with commas between. What is not said: at once, for good, once.
    fn from_str(text: &str) -> Result<Self, Misunderstood> {
        let misunderstood = || Misunderstood {
            text: text.to_owned(),
            what: "a stall",
            how: "for=2s,after=10s,every=30s or a part of it; `every` is longer than `for`",
        };
        let mut plan = Self { after: Duration::ZERO, lasts: None, every: None };
        for part in text.split(',').map(str::trim) {
            let (name, time) = part.split_once('=').ok_or_else(misunderstood)?;
            let time = duration(time).ok_or_else(misunderstood)?;
            match name {
                "after" => plan.after = time,
                "for" => plan.lasts = Some(time),
                "every" => plan.every = Some(time),
                _ => return Err(misunderstood()),
            }
        }
        let repeats = plan.every.is_none_or(|every| plan.lasts.is_some_and(|lasts| lasts < every));
        repeats.then_some(plan).ok_or_else(misunderstood)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn jitters() {
        let check = |text: &str, expected: Option<Jitter>| {
            assert_eq!(text.parse().ok(), expected, "{text}");
            let again = expected.map(|jitter| jitter.to_string().parse().unwrap());
            assert_eq!(again, expected, "what is shown can be read");
        };
        check("0.5ms", Some(Jitter::Uniform(MS / 2)));
        check("uniform:1ms", Some(Jitter::Uniform(MS)));
        check("normal:1ms", Some(Jitter::Normal(MS)));
        check("0s", Some(Jitter::None));
        check("pareto:1ms", None);
        check("1", None);
        check("", None);
        check("normal:", None);
    }

    #[test]
    fn losses() {
        let check = |text: &str, expected: Option<Loss>| assert_eq!(text.parse().ok(), expected, "{text}");
        let none = Loss::default();
        check("after=10s", Some(Loss { after: Some(10 * SECOND), ..none }));
        check("bytes=1000,silent", Some(Loss { after_bytes: Some(1000), how: Cut::Silent, ..none }));
        check(
            "every=30s, after=1ms, reset",
            Some(Loss { every: Some(30 * SECOND), after: Some(MS), ..none }),
        );
        for text in
            ["", "silent", "after", "after=", "after=10", "every=0s", "bytes=-1", "after=1s,quietly", "10s"]
        {
            check(text, None);
        }
    }

    #[test]
    fn stalls() {
        let check =
            |text: &str, expected: Option<StallPlan>| assert_eq!(text.parse().ok(), expected, "{text}");
        let (after, lasts) = (10 * SECOND, Some(2 * SECOND));
        check("for=2s,after=10s", Some(StallPlan { after, lasts, every: None }));
        check("after=10s", Some(StallPlan { after, lasts: None, every: None }));
        check("every=30s,for=2s", Some(StallPlan { after: Duration::ZERO, lasts, every: Some(30 * SECOND) }));
        for text in ["", "2s", "for=2", "for=2s,every=2s", "every=2s", "until=2s", "for=2s,"] {
            check(text, None);
        }
    }

    #[test]
    fn what_is_misunderstood_says_what_to_write() {
        let error = "10s".parse::<Loss>().unwrap_err().to_string();
        assert!(error.starts_with("`10s` is not a loss of connection: write after=10s"), "{error}");
    }

    #[test]
    fn buffers_hold_bandwidth_times_delay() {
        let check = |delay: Duration, jitter: Jitter, rate: Option<&str>, expected: usize| {
            let rate = rate.map(|rate| rate.parse().unwrap());
            let path = Path { delay, jitter, rate, buffer: None };
            assert_eq!(path.buffer_bytes(), expected, "{path:?}");
        };
        check(Duration::ZERO, Jitter::None, None, 1 << 20);
        check(MS, Jitter::None, None, 10_000_000);
        check(MS, Jitter::Uniform(MS), None, 20_000_000);
        check(MS, Jitter::Normal(MS), None, 40_000_000);
        check(10 * MS, Jitter::None, None, 64 << 20);
        // 125 kB under way a millisecond, and one in the queue.
        check(9 * MS, Jitter::None, Some("1gbit"), 2 * 1_250_000);
        check(MS, Jitter::None, Some("1mbit"), 1 << 20);
        check(100 * MS, Jitter::None, Some("1tbit"), 1 << 30);
        let asked = Path { delay: MS, jitter: Jitter::None, rate: None, buffer: Some(1000) };
        assert_eq!(asked.buffer_bytes(), 1000);
    }
}
