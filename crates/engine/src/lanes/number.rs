//! How many lanes a channel is to have: [`Lanes`].

use thalweg_lanes::PolicyConfig;

/// How many connections a channel has, and how their number is found.
///
/// ```
/// use thalweg_engine::Lanes;
///
/// // As many as help: from one to as many as there are processors, but three at least and 16 at most.
/// let adaptive = Lanes::adaptive();
/// // As many as help, but two at least and eight at most.
/// let bounded = Lanes::adaptive().floor(2).cap(8);
/// // Four, come what may.
/// let fixed = Lanes::fixed(4);
/// assert_eq!(fixed, 4.into());
/// ```
///
/// An adaptive channel begins with its floor, one unless told otherwise. While calls come it looks some times a second
/// at what limits them; where that is the lane, it opens another, and keeps it if more calls then get through or they
/// get through faster. Where more lanes do not help, as on a slow network or a machine without a spare processor, it
/// ends with one or a few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    number: Number,
    /// A service config's, which only ever lowers the number.
    limit: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Number {
    Adaptive { floor: usize, cap: Option<usize> },
    Fixed(usize),
}

/// The most lanes a channel can be given.
const LANES_MAX: usize = 1024;
/// What a service config may raise the cap to where the application has set none.
const CAP_DEFAULT_MAX: usize = 16;

impl Lanes {
    /// As many as help; the default.
    pub fn adaptive() -> Self {
        Self { number: Number::Adaptive { floor: 1, cap: None }, limit: None }
    }

    /// So many, at least 1 and at most 1024.
    pub fn fixed(number: usize) -> Self {
        Self { number: Number::Fixed(number.clamp(1, LANES_MAX)), limit: None }
    }

    /// Adaptive lanes: never fewer than this. Of fixed ones it changes nothing.
    pub fn floor(mut self, lanes: usize) -> Self {
        if let Number::Adaptive { floor, .. } = &mut self.number {
            *floor = lanes.clamp(1, LANES_MAX);
        }
        self
    }

    /// Adaptive lanes: never more than this, or than the floor if that is higher; by default as many as the process may
    /// use processors, but three at least and 16 at most. Of fixed ones it changes nothing.
    pub fn cap(mut self, lanes: usize) -> Self {
        if let Number::Adaptive { cap, .. } = &mut self.number {
            *cap = Some(lanes.clamp(1, LANES_MAX));
        }
        self
    }

    /// A service config's `connectionScaling.maxConnectionsPerSubchannel` (gRFC A105): the cap, clamped to what the
    /// application has set.
    pub(crate) fn limit(&mut self, connections: Option<u32>) {
        self.limit = connections.map(|connections| connections as usize);
    }

    /// With how many lanes the channel begins.
    pub(super) fn initial(&self) -> usize {
        match self.number {
            Number::Fixed(number) => self.limit.map_or(number, |limit| number.min(limit)),
            Number::Adaptive { .. } => self.bounds(1).0,
        }
    }

    /// The policy's bounds on a machine with so many processors; `None` where the number is fixed.
    pub(super) fn policy(&self, cores: usize) -> Option<PolicyConfig> {
        if let Number::Fixed(_) = self.number {
            return None;
        }
        let (floor, cap) = self.bounds(cores);
        Some(PolicyConfig { floor, cap, ..PolicyConfig::for_cores(cores) })
    }

    fn bounds(&self, cores: usize) -> (usize, usize) {
        let Number::Adaptive { floor, cap } = self.number else { return (1, 1) };
        let cap = match (cap, self.limit) {
            (Some(cap), Some(limit)) => cap.min(limit),
            (Some(cap), None) => cap,
            (None, Some(limit)) => limit.min(CAP_DEFAULT_MAX),
            (None, None) => PolicyConfig::for_cores(cores).cap,
        };
        // A service's limit is a limit; an application's cap below its own floor is not meant.
        let floor = self.limit.map_or(floor, |limit| floor.min(limit));
        (floor, cap.max(floor))
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self::adaptive()
    }
}

/// A fixed number of lanes.
impl From<usize> for Lanes {
    fn from(number: usize) -> Self {
        Self::fixed(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds() {
        let check = |lanes: Lanes, limit: Option<u32>, expected: (usize, usize)| {
            let mut limited = lanes.clone();
            limited.limit(limit);
            let cap = limited.policy(8).map_or(limited.initial(), |policy| policy.cap);
            assert_eq!((limited.initial(), cap), expected, "{lanes:?}, limit {limit:?}");
        };
        check(Lanes::adaptive(), None, (1, 8));
        check(Lanes::adaptive().cap(3), None, (1, 3));
        check(Lanes::adaptive().floor(2), None, (2, 8));
        check(Lanes::adaptive().floor(9), None, (9, 9));
        check(Lanes::adaptive().floor(5).cap(3), None, (5, 5));
        check(Lanes::adaptive().floor(0).cap(0), None, (1, 1));
        check(Lanes::fixed(0), None, (1, 1));
        check(4.into(), None, (4, 4));
        check(usize::MAX.into(), None, (1024, 1024));
        check(Lanes::fixed(4).floor(9).cap(1), None, (4, 4));
        // A service config raises the default, and lowers all else.
        check(Lanes::adaptive(), Some(12), (1, 12));
        check(Lanes::adaptive(), Some(100), (1, 16));
        check(Lanes::adaptive().cap(20), Some(100), (1, 20));
        check(Lanes::adaptive().cap(20), Some(3), (1, 3));
        check(Lanes::adaptive().floor(4), Some(3), (3, 3));
        check(Lanes::fixed(4), Some(3), (3, 3));
        check(Lanes::fixed(4), Some(5), (4, 4));
    }
}
