//! The numbers of the policy.

/// Bounds and thresholds of [`Policy`](super::Policy); units are in the names. The crate's documentation gives the
/// reasons.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolicyConfig {
    /// Never fewer lanes than this, at least one.
    pub floor: usize,
    /// Never more lanes than this, at least the floor.
    pub cap: usize,
    /// How often samples are to be taken.
    pub tick_ms: u64,

    /// What more lanes must bring to be kept, as a logarithm.
    pub gain_min: f64,
    /// What fewer lanes may cost, likewise.
    pub loss_max: f64,
    /// What a gain in latency counts beside one in rate.
    pub latency_weight: f64,

    /// A call's time outside the network, as a share of all its time, below which more lanes are not tried.
    pub late_share_min: f64,
    /// The same where few calls are in flight.
    pub late_share_few_min: f64,
    /// The same, above which more lanes are tried once more where twice as many did not help.
    pub late_share_far_min: f64,
    /// So many calls are few.
    pub few_calls_max: usize,
    /// The share of its time that a driver must be at work to be a reason to try by itself.
    pub busy_share_min: f64,
    /// The share of a call's time that it waits to be written, likewise.
    pub write_share_min: f64,
    /// The share of calls that found the lane's lock taken, likewise.
    pub contended_share_min: f64,
    /// The share of the time in which flow control kept data back, likewise.
    pub flow_share_min: f64,

    /// Ticks before a comparison is looked at.
    pub ticks_min: usize,
    /// Ticks after which a trial of more lanes must end.
    pub up_ticks_max: usize,
    /// Ticks after which a trial of fewer lanes must end.
    pub down_ticks_max: usize,
    /// Ticks of a steady load that are kept.
    pub steady_ticks_max: usize,
    /// How many standard errors make a difference.
    pub sigmas: f64,
    /// A relative standard error up to which a rate is one to compare others with.
    pub error_max: f64,
    /// Ticks after which what a search has found is looked at again.
    pub confirm_ticks: usize,
    /// The least that the rates of two ticks are thought to differ by chance.
    pub spread_min: f64,

    /// Another load: rate, calls in flight or latency differ by this factor.
    pub change_factor: f64,
    /// The same, by this many standard errors.
    pub change_sigmas: f64,
    /// Ticks that show another load.
    pub change_ticks: usize,

    /// Until a steady load is tried again with another number; doubled each time that it was in vain.
    pub retry_ms: u64,
    /// Limit of the doubled [`retry_ms`](Self::retry_ms).
    pub retry_ms_max: u64,
    /// From a search to one for another load; doubled each time that they follow each other within
    /// [`search_again_ms`](Self::search_again_ms).
    pub search_ms: u64,
    /// Searches closer than this double [`search_ms`](Self::search_ms).
    pub search_again_ms: u64,
    /// Limit of the doubled [`search_ms`](Self::search_ms).
    pub search_ms_max: u64,
    /// For lanes to connect, beside some round trips.
    pub connect_ms_max: u64,
    /// Without a call for so long, a channel goes back to its floor.
    pub idle_ms: u64,
}

impl PolicyConfig {
    /// The default for a machine on which the process may use `cores`: from one lane to as many as cores, but three at
    /// least and 16 at most.
    pub fn for_cores(cores: usize) -> Self {
        Self {
            floor: 1,
            cap: cores.clamp(LANES_DEFAULT_MIN, LANES_DEFAULT_MAX),
            tick_ms: 25,
            gain_min: 0.03,
            loss_max: 0.03,
            latency_weight: 0.2,
            late_share_min: 0.08,
            late_share_few_min: 0.25,
            late_share_far_min: 0.15,
            few_calls_max: 4,
            busy_share_min: 0.7,
            write_share_min: 0.25,
            contended_share_min: 0.25,
            flow_share_min: 0.1,
            ticks_min: 4,
            up_ticks_max: 24,
            down_ticks_max: 20,
            steady_ticks_max: 40,
            sigmas: 2.0,
            error_max: 0.03,
            confirm_ticks: 12,
            spread_min: 0.015,
            change_factor: 1.4,
            change_sigmas: 5.0,
            change_ticks: 6,
            retry_ms: 15_000,
            retry_ms_max: 600_000,
            search_ms: 250,
            search_again_ms: 10_000,
            search_ms_max: 60_000,
            connect_ms_max: 1_000,
            idle_ms: 3_000,
        }
    }
}

/// What a client of one core may try, too: the server's connection can be what limits, and two lanes can stand in each
/// other's way where three do not. With four calls in flight and a core a side, one lane makes 44.9 k calls/s, two
/// 35.9 k and three 54.1 k.
const LANES_DEFAULT_MIN: usize = 3;
/// The most lanes that a channel opens unless told otherwise.
const LANES_DEFAULT_MAX: usize = 16;
