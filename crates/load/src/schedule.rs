//! Schedule of starts: a rate over time.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Highest accepted rate, more than any machine can start.
const RATE_MAX: f64 = 1e9;
/// Longest accepted time: a year.
const SECONDS_MAX: f64 = 366.0 * 24.0 * 3600.0;
/// Error of a piece without a time before another piece.
const NO_TIME: &str = "missing time before the next piece, such as /30s";

/// Calls to start per second, over time.
///
/// Written as pieces, separated by commas or line ends:
///
/// - `1000`: constant, without end;
/// - `500/30s`: constant for 30 s;
/// - `100..5000/60s`: a linear ramp of 60 s;
/// - `100..500+100/10s`: steps of 100, each for 10 s;
/// - `50@10s`: a burst of 50 calls every 10 s, and `50@10s/60s` for 60 s.
///
/// After the last piece its final rate, or its bursts, continue.
///
/// ```
/// use thalweg_load::Schedule;
///
/// let schedule: Schedule = "100..300/10s".parse()?;
/// // Half of the time is at less than 200 calls a second.
/// assert_eq!(schedule.starts_before(5.0).round(), 750.0);
/// assert_eq!(schedule.start_of(2000.0), Some(10.0));
/// # Ok::<(), thalweg_load::ScheduleError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    text: String,
    pieces: Vec<Piece>,
}

/// A linear change of the rate, or bursts with that mean rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    from: f64,
    to: f64,
    /// Infinite for the last piece.
    seconds: f64,
    burst: Option<Burst>,
}

/// Calls started at once, first at the beginning of the piece.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Burst {
    calls: f64,
    every_s: f64,
}

impl Burst {
    /// Tolerance for rounding errors of the division, which could move a time past a burst or a call before it.
    const ROUNDING: f64 = 1e-9;

    fn starts_before(self, seconds: f64) -> f64 {
        self.calls * (seconds / self.every_s - Self::ROUNDING).ceil().max(0.0)
    }

    fn start_of(self, calls: f64) -> f64 {
        self.every_s * (calls / self.calls + Self::ROUNDING).floor()
    }
}

/// An invalid schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid rate `{piece}`: {why}; examples: 1000, 500/30s, 100..5000/60s, 100..500+100/10s, 50@10s, several with \
     commas"
)]
pub struct ScheduleError {
    piece: String,
    why: String,
}

/// Formats a written schedule with its unit: `1000 calls/s` or `flows/s`, and bursts as `schedule …`. `unit` is
/// [`LoadRun::unit`](crate::LoadRun::unit).
pub fn scheduled(written: &str, unit: &str) -> String {
    if written.contains('@') { format!("schedule {written}") } else { format!("{written} {unit}s/s") }
}

impl Schedule {
    /// Returns the number of calls due within `seconds` after the start.
    pub fn starts_before(&self, seconds: f64) -> f64 {
        let (mut left, mut started) = (seconds, 0.0);
        for piece in &self.pieces {
            let within = left.min(piece.seconds);
            started += piece.starts_before(within);
            left -= within;
            if left <= 0.0 {
                break;
            }
        }
        started
    }

    /// Returns when this many calls are due, in seconds since the start; `None` if there are never as many.
    pub fn start_of(&self, calls: f64) -> Option<f64> {
        let (mut left, mut before) = (calls, 0.0);
        for piece in &self.pieces {
            let calls_in_piece = piece.starts_before(piece.seconds);
            // A piece without calls has no start. After the last burst of a piece none follows at its end.
            let is_within =
                if piece.burst.is_some() { left < calls_in_piece } else { left <= calls_in_piece };
            if calls_in_piece > 0.0 && is_within {
                return piece.start_of(left).map(|seconds| before + seconds);
            }
            left -= calls_in_piece;
            before += piece.seconds;
        }
        None
    }

    /// Returns the rate at this time in calls per second; the mean rate for bursts.
    pub fn rate_at(&self, seconds: f64) -> f64 {
        let mut left = seconds;
        for piece in &self.pieces {
            if left < piece.seconds {
                return piece.from + (piece.to - piece.from) * (left / piece.seconds).min(1.0);
            }
            left -= piece.seconds;
        }
        0.0
    }

    /// Returns a constant rate without end.
    pub(crate) fn constant(rate: f64) -> Self {
        Self { text: format!("{rate:.1}"), pieces: vec![Piece::flat(rate, f64::INFINITY)] }
    }

    /// Returns whether there are bursts.
    pub fn has_bursts(&self) -> bool {
        self.pieces.iter().any(|piece| piece.burst.is_some())
    }

    /// Returns the highest rate; the mean rate for bursts.
    pub fn most(&self) -> f64 {
        self.pieces.iter().fold(0.0, |most, piece| most.max(piece.from).max(piece.to))
    }

    /// Returns this schedule, preceded by its first rate for the warm-up.
    pub(crate) fn after(&self, warm_up: Duration) -> Self {
        let first = self.rate_at(0.0);
        let mut later = self.clone();
        if !warm_up.is_zero() {
            later.pieces.insert(0, Piece::flat(first, warm_up.as_secs_f64()));
        }
        later
    }

    /// Returns when the schedule ends: when its final rate is 0 or below `least`. Returns `None` if it never ends.
    pub(crate) fn ends_after(&self, least: f64) -> Option<Duration> {
        let final_piece = self.pieces.last()?;
        (final_piece.from <= 0.0 || final_piece.from < least).then(|| self.written_length())
    }

    /// Returns the total length of the pieces, without the final rate that continues; zero for a rate alone.
    pub fn written_length(&self) -> Duration {
        let finite = self.pieces.iter().map(|piece| piece.seconds).filter(|seconds| seconds.is_finite());
        Duration::from_secs_f64(finite.sum())
    }
}

impl Piece {
    fn flat(rate: f64, seconds: f64) -> Self {
        Self { from: rate, to: rate, seconds, burst: None }
    }

    fn starts_before(self, seconds: f64) -> f64 {
        if let Some(burst) = self.burst {
            return burst.starts_before(seconds);
        }
        if self.seconds.is_infinite() {
            return if self.from > 0.0 { self.from * seconds } else { 0.0 };
        }
        self.from * seconds + (self.to - self.from) * seconds * seconds / (2.0 * self.seconds)
    }

    /// Solves for the time, in the form that loses no digits if the rate hardly changes.
    fn start_of(self, calls: f64) -> Option<f64> {
        if let Some(burst) = self.burst {
            return Some(burst.start_of(calls));
        }
        let growth = if self.seconds.is_infinite() { 0.0 } else { (self.to - self.from) / self.seconds };
        let root = (self.from * self.from + 2.0 * growth * calls).max(0.0).sqrt();
        if calls <= 0.0 {
            return (self.from > 0.0 || growth > 0.0).then_some(0.0);
        }
        (self.from + root > 0.0).then(|| 2.0 * calls / (self.from + root))
    }
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let mut pieces = Vec::new();
        let words = text.split([',', '\n']).map(|piece| piece.split('#').next().unwrap_or_default().trim());
        let words: Vec<&str> = words.filter(|piece| !piece.is_empty()).collect();
        for (index, word) in words.iter().enumerate() {
            let error = |why: &str| ScheduleError { piece: (*word).to_owned(), why: why.to_owned() };
            if pieces.last().is_some_and(|piece: &Piece| piece.seconds.is_infinite()) {
                return Err(error("missing time of the piece before it, such as /30s"));
            }
            pieces.extend(parse_piece(word, index + 1 == words.len()).map_err(|why| error(&why))?);
        }
        let Some(last) = pieces.last() else {
            return Err(ScheduleError { piece: text.to_owned(), why: "empty".to_owned() });
        };
        if last.seconds.is_finite() {
            let final_piece = match last.burst {
                Some(_) => Piece { seconds: f64::INFINITY, ..*last },
                None => Piece::flat(last.to, f64::INFINITY),
            };
            pieces.push(final_piece);
        }
        if pieces.iter().all(|piece| piece.from <= 0.0 && piece.to <= 0.0) {
            return Err(ScheduleError { piece: text.to_owned(), why: "no call would start".to_owned() });
        }
        Ok(Self { text: words.join(","), pieces })
    }
}

fn parse_piece(word: &str, is_last: bool) -> Result<Vec<Piece>, String> {
    let (rates, time) = match word.split_once('/') {
        Some((rates, time)) => (rates, Some(seconds(time.trim())?)),
        None => (word, None),
    };
    if let Some((calls, every)) = rates.split_once('@') {
        return Ok(vec![bursts(calls, every, time, is_last)?]);
    }
    let (from, to, step) = match rates.split_once("..") {
        None => {
            let rate = rate(rates)?;
            (rate, rate, None)
        }
        Some((from, to)) => match to.split_once('+') {
            None => (rate(from)?, rate(to)?, None),
            Some((to, step)) => (rate(from)?, rate(to)?, Some(rate(step)?)),
        },
    };
    let Some(seconds) = time else {
        if rates.contains("..") {
            return Err("missing time, such as /60s".to_owned());
        }
        if !is_last {
            return Err(NO_TIME.to_owned());
        }
        return Ok(vec![Piece::flat(from, f64::INFINITY)]);
    };
    let Some(step) = step else { return Ok(vec![Piece { from, to, seconds, burst: None }]) };
    if step <= 0.0 {
        return Err("a step must be more than 0".to_owned());
    }
    let steps = ((to - from).abs() / step + 1e-9).floor();
    if steps > 100_000.0 {
        return Err("a piece has at most 100,000 steps".to_owned());
    }
    let step = if to < from { -step } else { step };
    let flat = |index: u32| Piece::flat(from + step * f64::from(index), seconds);
    Ok((0..=steps as u32).map(flat).collect())
}

/// Parses bursts such as `50@10s`, with an optional time.
fn bursts(calls: &str, every: &str, time: Option<f64>, is_last: bool) -> Result<Piece, String> {
    let (calls, every_s) = (rate(calls)?, seconds(every.trim())?);
    if calls < 1.0 || calls.fract() != 0.0 {
        return Err("a burst must be a whole number of calls".to_owned());
    }
    if time.is_none() && !is_last {
        return Err(NO_TIME.to_owned());
    }
    let burst = Some(Burst { calls, every_s });
    Ok(Piece { seconds: time.unwrap_or(f64::INFINITY), burst, ..Piece::flat(calls / every_s, 0.0) })
}

/// Parses a rate: `1000`, `2.5`, `10k`, `1M`.
fn rate(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let (number, factor) = match text.as_bytes().last() {
        Some(b'k') => (&text[..text.len() - 1], 1e3),
        Some(b'M') => (&text[..text.len() - 1], 1e6),
        _ => (text, 1.0),
    };
    let rate = number.parse::<f64>().map(|number| number * factor);
    match rate {
        Ok(rate) if (0.0..=RATE_MAX).contains(&rate) => Ok(rate),
        Ok(_) => Err("a rate must be between 0 and 10⁹".to_owned()),
        Err(_) => Err(format!("`{text}` is not a number")),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let time = humantime::parse_duration(text)
        .map_err(|_| format!("expected a time such as 30s, found `{text}`"))?;
    match time.as_secs_f64() {
        seconds if seconds > 0.0 && seconds <= SECONDS_MAX => Ok(seconds),
        _ => Err(format!("{text} is out of range, from above 0 to a year")),
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(text: &str) -> Schedule {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn constant_rate_never_ends() {
        let schedule = schedule("1000");
        assert!((schedule.starts_before(2.5) - 2500.0).abs() < 1e-9);
        assert_eq!([0.0, 1.0, 5000.0].map(|calls| schedule.start_of(calls)), [0.0, 0.001, 5.0].map(Some));
        assert_eq!(schedule.written_length(), Duration::ZERO);
    }

    #[test]
    fn calls_of_ramps_and_steps_equal_area_under_rate() {
        let check = |text: &str, seconds: f64, calls: f64, rate: f64| {
            let schedule = schedule(text);
            assert!((schedule.starts_before(seconds) - calls).abs() < 1e-6 * calls.max(1.0), "{text}");
            assert!((schedule.rate_at(seconds) - rate).abs() < 1e-9 * rate.max(1.0), "{text}");
            let start = schedule.start_of(calls).unwrap();
            assert!((schedule.starts_before(start) - calls).abs() < 1e-6 * calls.max(1.0), "{text}");
        };
        check("100..5000/60s", 60.0, 153_000.0, 5000.0);
        check("100..5000/60s", 30.0, 39_750.0, 2550.0);
        check("100..5000/60s", 70.0, 203_000.0, 5000.0);
        check("0..10/1s", 1.0, 5.0, 10.0);
        check("1000..0/10s", 5.0, 3750.0, 500.0);
        check("100..300+100/10s", 25.0, 100.0 * 10.0 + 200.0 * 10.0 + 300.0 * 5.0, 300.0);
        check("300..100+100/10s", 25.0, 300.0 * 10.0 + 200.0 * 10.0 + 100.0 * 5.0, 100.0);
        check("10k/1s, 2.5", 3.0, 10_005.0, 2.5);
        check("# warm\n5/2s\n\n7", 3.0, 17.0, 7.0);
        check("0/1s,10", 2.0, 10.0, 10.0);
        assert_eq!(schedule("10/1s,20/2s").written_length(), Duration::from_secs(3));
        // No call starts after the end.
        assert_eq!(schedule("1000..0/10s").start_of(5001.0), None);
    }

    #[test]
    fn bursts_start_together_and_repeat() {
        let check = |text: &str, starts: &[f64]| {
            let schedule = schedule(text);
            let found: Vec<f64> = (0..starts.len()).filter_map(|n| schedule.start_of(n as f64)).collect();
            assert_eq!(found, starts, "{text}");
            // The number due by a time equals the number of earlier starts. For rates, it is compared at whole numbers
            // only.
            for seconds in [0.0, 1.0, 2.0, 3.0] {
                let before = starts.iter().filter(|start| **start < seconds).count() as f64;
                assert!((schedule.starts_before(seconds) - before).abs() < 1e-9, "{text}: {seconds} s");
            }
        };
        check("2@1s", &[0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0]);
        check("2@2s/3s,1", &[0.0, 0.0, 2.0, 2.0, 3.0, 4.0]);
        check("1@1s/2s,0/1s,3@5s", &[0.0, 1.0, 3.0, 3.0, 3.0, 8.0]);
        check("1/2s,2@1s", &[0.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0]);
        // Bursts continue after the last piece.
        check("2@2s/2s", &[0.0, 0.0, 2.0, 2.0, 4.0, 4.0]);
        let tenth = schedule("3@100ms");
        assert!(
            (0..100).all(|n| (tenth.starts_before(f64::from(n) * 0.1) - 3.0 * f64::from(n)).abs() < 1e-9)
        );
        assert!((tenth.rate_at(7.0) - 30.0).abs() < 1e-9 && tenth.has_bursts());
        assert_eq!(tenth.after(Duration::from_secs(1)).start_of(30.0), Some(1.0));
        assert_eq!(scheduled("5", "call"), "5 calls/s");
        assert_eq!(scheduled("3@100ms", "flow"), "schedule 3@100ms");
    }

    #[test]
    fn invalid_schedule_is_rejected() {
        let check = |text: &str, expected: &str| {
            let error = text.parse::<Schedule>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("", "empty");
        check("fast", "`fast` is not a number");
        check("100..200", "missing time, such as /60s");
        check("100,200", "before the next piece");
        check("100/0s", "out of range");
        check("100/soon", "found `soon`");
        check("-1", "between 0 and");
        check("nan", "between 0 and");
        check("0", "no call would start");
        check("1..9+0/1s", "a step must be more than 0");
        check("5@", "found ``");
        check("0@1s", "a whole number of calls");
        check("2.5@1s", "a whole number of calls");
        check("5@1s,10", "before the next piece");
    }
}
