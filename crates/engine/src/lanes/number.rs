//! The number of a channel's lanes: [`Lanes`].

use thalweg_lanes::PolicyConfig;

/// The number of a channel's connections, fixed or adaptive.
///
/// ```
/// use thalweg_engine::Lanes;
///
/// // Adaptive: from one to one per processor, with a cap of at least three and at most 16.
/// let adaptive = Lanes::adaptive();
/// // Adaptive: from two to eight.
/// let bounded = Lanes::adaptive().floor(2).cap(8);
/// // Always four.
/// let fixed = Lanes::fixed(4);
/// assert_eq!(fixed, 4.into());
/// ```
///
/// An adaptive channel starts with its floor, which is one by default. While there are calls, it checks several times
/// a second what limits them. If a lane does, it opens another, and keeps it if throughput or latency improves. On a
/// slow network, or a machine without a spare processor, it ends with one lane or a few.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lanes {
    number: Number,
    /// Limit of a service config.
    limit: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Number {
    Adaptive { floor: usize, cap: Option<usize> },
    Fixed(usize),
}

/// Maximum number of lanes.
const LANES_MAX: usize = 1024;
/// Maximum cap that a service config may set if the application has set none.
const CAP_DEFAULT_MAX: usize = 16;

impl Lanes {
    /// Returns an adaptive number of lanes; the default.
    pub fn adaptive() -> Self {
        Self { number: Number::Adaptive { floor: 1, cap: None }, limit: None }
    }

    /// Returns a fixed number of lanes, clamped to 1..=1024.
    pub fn fixed(number: usize) -> Self {
        Self { number: Number::Fixed(number.clamp(1, LANES_MAX)), limit: None }
    }

    /// Sets the minimum of adaptive lanes; 1 by default. Does nothing for a fixed number.
    pub fn floor(mut self, lanes: usize) -> Self {
        if let Number::Adaptive { floor, .. } = &mut self.number {
            *floor = lanes.clamp(1, LANES_MAX);
        }
        self
    }

    /// Sets the maximum of adaptive lanes, at least the floor. By default the number of processors that the process
    /// may use, but at least three and at most 16. Does nothing for a fixed number.
    pub fn cap(mut self, lanes: usize) -> Self {
        if let Number::Adaptive { cap, .. } = &mut self.number {
            *cap = Some(lanes.clamp(1, LANES_MAX));
        }
        self
    }

    /// Sets the limit from a service config's `connectionScaling.maxConnectionsPerSubchannel` (gRFC A105). It replaces
    /// the default cap, and lowers what the application has set.
    pub(crate) fn limit(&mut self, connections: Option<u32>) {
        self.limit = connections.map(|connections| connections as usize);
    }

    /// Returns the channel's initial number of lanes.
    pub(super) fn initial(&self) -> usize {
        match self.number {
            Number::Fixed(number) => self.limit.map_or(number, |limit| number.min(limit)),
            Number::Adaptive { .. } => self.bounds(1).0,
        }
    }

    /// Returns the policy's bounds on a machine with `cores` processors; `None` if the number is fixed.
    pub(super) fn policy(&self, cores: usize) -> Option<PolicyConfig> {
        if let Number::Fixed(_) = self.number {
            return None;
        }
        let (floor, cap) = self.bounds(cores);
        Some(PolicyConfig { floor, cap, ..PolicyConfig::for_cores(cores) })
    }

    /// Returns the number for each endpoint of a channel. They share the cap of an adaptive number, and each has at
    /// least its floor.
    pub(crate) fn for_endpoint(&self, endpoints: usize) -> Self {
        let mut lanes = self.clone();
        if let Number::Adaptive { floor, .. } = self.number {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let cap = self.bounds(cores).1.div_ceil(endpoints.max(1));
            lanes.number = Number::Adaptive { floor, cap: Some(cap.max(floor)) };
        }
        lanes
    }

    /// Returns the cap of each endpoint of a channel; `None` if the number is fixed.
    pub(crate) fn cap_for_endpoint(&self, endpoints: usize) -> Option<usize> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.for_endpoint(endpoints).policy(cores).map(|policy| policy.cap)
    }

    fn bounds(&self, cores: usize) -> (usize, usize) {
        let Number::Adaptive { floor, cap } = self.number else { return (1, 1) };
        let cap = match (cap, self.limit) {
            (Some(cap), Some(limit)) => cap.min(limit),
            (Some(cap), None) => cap,
            (None, Some(limit)) => limit.min(CAP_DEFAULT_MAX),
            (None, None) => PolicyConfig::for_cores(cores).cap,
        };
        // A service's limit wins over the floor. An application's cap below its own floor is a mistake.
        let floor = self.limit.map_or(floor, |limit| floor.min(limit));
        (floor, cap.max(floor))
    }
}

impl Default for Lanes {
    fn default() -> Self {
        Self::adaptive()
    }
}

/// Returns a fixed number of lanes.
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
        // A service config raises the default cap, and lowers everything else.
        check(Lanes::adaptive(), Some(12), (1, 12));
        check(Lanes::adaptive(), Some(100), (1, 16));
        check(Lanes::adaptive().cap(20), Some(100), (1, 20));
        check(Lanes::adaptive().cap(20), Some(3), (1, 3));
        check(Lanes::adaptive().floor(4), Some(3), (3, 3));
        check(Lanes::fixed(4), Some(3), (3, 3));
        check(Lanes::fixed(4), Some(5), (4, 4));
    }
}
