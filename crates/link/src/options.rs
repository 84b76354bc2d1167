//! Options of a link.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::address::Address;
use crate::rate::Rate;

/// Options of a link. By default it is a perfect network: no delay, no limit, no failures.
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

/// Options that can be changed at run time.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) delay: Duration,
    pub(crate) jitter: Jitter,
    pub(crate) rate: Option<Rate>,
    /// Requested buffer size.
    pub(crate) buffer: Option<usize>,
}

/// Variation of a chunk's one-way delay, drawn for each chunk. Bytes of a connection stay in order, so a chunk may have
/// to wait for the one before. Delays are never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// No jitter.
    #[default]
    None,
    /// Uniformly distributed, up to this much less or more.
    Uniform(Duration),
    /// Normally distributed with this standard deviation, clamped to three of them.
    Normal(Duration),
}

impl Jitter {
    pub(crate) const DEVIATIONS_MAX: f64 = 3.0;

    /// Returns the largest added delay.
    pub(crate) fn max(self) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Uniform(amplitude) => amplitude,
            Self::Normal(deviation) => deviation.mul_f64(Self::DEVIATIONS_MAX),
        }
    }

    /// Returns the configured time.
    fn time(self) -> Duration {
        match self {
            Self::None => Duration::ZERO,
            Self::Uniform(time) | Self::Normal(time) => time,
        }
    }

    /// Limits times to a year, so that adding them cannot overflow.
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
    /// Resets both ends (RST) at once; bytes in transit are lost. An end on a UNIX socket sees the end of the stream,
    /// or a reset if the link held unread bytes from it.
    #[default]
    Reset,
    /// Forwards nothing more, without a signal: both ends are left half-open.
    Silent,
}

/// When connections are cut automatically. Applies to each connection separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// Time after the connection was accepted.
    pub after: Option<Duration>,
    /// Number of bytes, in both directions together. The next byte is not forwarded.
    pub after_bytes: Option<u64>,
    /// Average time until a random cut.
    pub every: Option<Duration>,
    /// Kind of cut.
    pub how: Cut,
}

/// When the link stalls automatically: by default from its start, permanently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StallPlan {
    /// Time from the start of the link to the first stall.
    pub after: Duration,
    /// Duration of a stall; permanent if `None`.
    pub lasts: Option<Duration>,
    /// Interval between the starts of stalls; `None` for a single stall.
    pub every: Option<Duration>,
}

/// Bandwidth in bytes/s assumed for sizing buffers of unlimited links: 10 GB/s, more than loopback achieves through a
/// proxy.
const BANDWIDTH_UNLIMITED: u64 = 10_000_000_000;
/// Minimum buffer of a direction of a connection: one write, for links without delay.
const BUFFER_BYTES_MIN: usize = 1 << 20;
/// Maximum default buffer of unlimited links: 6.7 ms at 10 GB/s.
const BUFFER_BYTES_MAX_UNLIMITED: usize = 64 << 20;
/// Maximum default buffer of limited links: 100 ms at 80 gbit.
const BUFFER_BYTES_MAX: usize = 1 << 30;

impl Path {
    /// Returns the maximum bytes in transit in a direction of a connection, beyond which the link stops reading.
    pub(crate) fn buffer_bytes(&self) -> usize {
        if let Some(buffer) = self.buffer {
            return buffer;
        }
        let time = self.delay + self.jitter.max();
        let Some(rate) = self.rate else {
            let in_transit = u128::from(BANDWIDTH_UNLIMITED) * time.as_nanos() / 1_000_000_000;
            let in_transit = usize::try_from(in_transit).unwrap_or(usize::MAX);
            return in_transit.clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX_UNLIMITED);
        };
        let in_transit = rate.bytes_in(time).saturating_add(rate.queue_bytes());
        // Doubled because small chunks cost more than their bytes.
        (2 * in_transit.min(BUFFER_BYTES_MAX)).clamp(BUFFER_BYTES_MIN, BUFFER_BYTES_MAX)
    }
}

impl LinkOptions {
    /// Creates options of a perfect network. The link accepts connections at `listen`, and opens one to `to` for each.
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

    /// Sets the one-way delay of each byte; a round trip takes two of them. Default: 0.
    pub fn delay(mut self, one_way: Duration) -> Self {
        self.path.delay = one_way;
        self
    }

    /// Sets the jitter of one-way delays. Default: none.
    pub fn jitter(mut self, jitter: Jitter) -> Self {
        self.path.jitter = jitter;
        self
    }

    /// Sets the rate of each direction, shared by all connections. Default: `None`, as fast as the machine allows.
    pub fn rate(mut self, rate: Option<Rate>) -> Self {
        self.path.rate = rate;
        self
    }

    /// Sets the maximum bytes in transit in a direction of a connection, beyond which the link stops reading. Less than
    /// bandwidth × delay limits the bandwidth. The default is twice what rate and delay need, or without a rate 10 GB/s
    /// × delay, at most 64 MiB. It is at least 1 MiB.
    pub fn buffer(mut self, bytes: usize) -> Self {
        self.path.buffer = Some(bytes);
        self
    }

    /// Sets whether opening a connection takes a round trip, like TCP's handshake. Default: true. The kernel accepts at
    /// once, so the link delays what follows: the first bytes of either side arrive as after a handshake.
    pub fn handshake(mut self, handshake: bool) -> Self {
        self.handshake = handshake;
        self
    }

    /// Sets the random seed of jitter and random cuts. Default: 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Sets the time to spin, instead of sleeping, before bytes are due. Default: 0. Spinning uses CPU time, and saves
    /// the wake-up latency.
    pub fn spin(mut self, spin: Duration) -> Self {
        self.spin = spin;
        self
    }

    /// Cuts connections automatically.
    pub fn loss_of_connection(mut self, loss: Loss) -> Self {
        self.loss = loss;
        self
    }

    /// Stalls the link automatically.
    pub fn stall(mut self, plan: StallPlan) -> Self {
        self.stall = Some(plan);
        self
    }
}

impl LinkOptions {
    /// Returns the name of a time that is longer than a year, if any.
    pub(crate) fn too_long(&self) -> Option<&'static str> {
        let Self { path, loss, stall, spin, .. } = self;
        let stall = stall.unwrap_or_default();
        let times = [
            ("the delay", Some(path.delay)),
            ("the jitter", Some(path.jitter.time())),
            ("the spinning", Some(*spin)),
            ("the time until a loss", loss.after.max(loss.every)),
            ("the stall's time", Some(stall.after).max(stall.lasts).max(stall.every)),
        ];
        times.into_iter().find(|(_, time)| time.is_some_and(|time| time > TIME_MAX)).map(|(what, _)| what)
    }
}

/// A text that is not a valid option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what} `{text}`; use {how}")]
pub struct ParseOptionError {
    text: String,
    what: &'static str,
    how: &'static str,
}

/// Maximum of all times, a year, so that adding them cannot overflow.
pub(crate) const TIME_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// Parses a duration in humantime's format, up to a year.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    humantime::parse_duration(text.trim()).ok().filter(|duration| *duration <= TIME_MAX)
}

impl FromStr for Jitter {
    type Err = ParseOptionError;

    fn from_str(text: &str) -> Result<Self, ParseOptionError> {
        let parsed = match text.split_once(':') {
            None => duration(text).map(Self::Uniform),
            Some(("uniform", amplitude)) => duration(amplitude).map(Self::Uniform),
            Some(("normal", deviation)) => duration(deviation).map(Self::Normal),
            Some(_) => None,
        };
        let parsed = parsed.map(|jitter| if jitter.time().is_zero() { Self::None } else { jitter });
        parsed.ok_or_else(|| ParseOptionError {
            text: text.to_owned(),
            what: "jitter",
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
    type Err = ParseOptionError;

    fn from_str(text: &str) -> Result<Self, ParseOptionError> {
        match text.trim() {
            "reset" => Ok(Self::Reset),
            "silent" => Ok(Self::Silent),
            _ => Err(ParseOptionError { text: text.to_owned(), what: "way to cut", how: "reset or silent" }),
        }
    }
}

impl FromStr for Loss {
    type Err = ParseOptionError;

    /// Parses `after=10s`, `bytes=1000000` and `every=30s`, separated by commas. `silent` among them leaves both ends
    /// half-open.
    fn from_str(text: &str) -> Result<Self, ParseOptionError> {
        let error = || ParseOptionError {
            text: text.to_owned(),
            what: "loss of connection",
            how: "after=10s, bytes=1000000 or every=30s (random, on average), with `,silent` for no reset",
        };
        let positive = |time: Duration| (!time.is_zero()).then_some(time);
        let mut loss = Self::default();
        for part in text.split(',').map(str::trim) {
            let parsed = match part.split_once('=') {
                Some(("after", time)) => duration(time).map(|time| loss.after = Some(time)),
                Some(("bytes", bytes)) => bytes.parse().ok().map(|bytes| loss.after_bytes = Some(bytes)),
                Some(("every", mean)) => {
                    duration(mean).and_then(positive).map(|mean| loss.every = Some(mean))
                }
                Some(_) => None,
                None => part.parse().ok().map(|how| loss.how = how),
            };
            parsed.ok_or_else(error)?;
        }
        let has_trigger = loss.after.is_some() || loss.after_bytes.is_some() || loss.every.is_some();
        has_trigger.then_some(loss).ok_or_else(error)
    }
}

impl FromStr for StallPlan {
    type Err = ParseOptionError;

    /// Parses `after=10s`, `for=2s` and `every=30s`, separated by commas. The defaults are: at once, for good, once.
    fn from_str(text: &str) -> Result<Self, ParseOptionError> {
        let error = || ParseOptionError {
            text: text.to_owned(),
            what: "stall",
            how: "for=2s,after=10s,every=30s or a part of it, with `every` longer than `for`",
        };
        let mut plan = Self::default();
        for part in text.split(',').map(str::trim) {
            let (name, time) = part.split_once('=').ok_or_else(error)?;
            let time = duration(time).ok_or_else(error)?;
            match name {
                "after" => plan.after = time,
                "for" => plan.lasts = Some(time),
                "every" => plan.every = Some(time),
                _ => return Err(error()),
            }
        }
        let repeats = plan.every.is_none_or(|every| plan.lasts.is_some_and(|lasts| lasts < every));
        repeats.then_some(plan).ok_or_else(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn parse_jitter() {
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
    fn parse_loss() {
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
    fn parse_stall() {
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
    fn parse_errors_name_the_valid_forms() {
        let error = "10s".parse::<Loss>().unwrap_err().to_string();
        assert!(error.starts_with("invalid loss of connection `10s`; use after=10s"), "{error}");
    }

    #[test]
    fn buffer_covers_bandwidth_delay_product() {
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
        // 125 kB per millisecond in transit, for 9 ms, and as much as 1 ms in the queue.
        check(9 * MS, Jitter::None, Some("1gbit"), 2 * 1_250_000);
        check(MS, Jitter::None, Some("1mbit"), 1 << 20);
        check(100 * MS, Jitter::None, Some("1tbit"), 1 << 30);
        let requested = Path { delay: MS, jitter: Jitter::None, rate: None, buffer: Some(1000) };
        assert_eq!(requested.buffer_bytes(), 1000);
    }
}
