//! What `multiples.js` draws: small plots side by side, a line for each of the same ways in all of them.

use serde::Serialize;

use thalweg_measure::figures::short;
use thalweg_measure::statistics::Interval;

/// Hues of peers, in the order of measuring; there are as many in the style sheet.
const PEERS: [&str; 5] = ["peer-1", "peer-2", "peer-3", "peer-4", "peer-5"];

/// The hue of the peer of this number, counted from 0.
pub(crate) fn peer_colour(number: usize) -> &'static str {
    PEERS[number % PEERS.len()]
}

/// What a line is of, and how it is drawn.
#[derive(Serialize)]
pub(crate) struct Way {
    pub(crate) id: usize,
    pub(crate) label: String,
    /// A custom property of the style sheet.
    pub(crate) colour: &'static str,
    pub(crate) dash: &'static str,
    pub(crate) width: f64,
}

/// A way's line in one of the plots.
#[derive(Serialize)]
pub(crate) struct Line<C> {
    pub(crate) way: usize,
    pub(crate) cells: Vec<C>,
}

/// The ends of an interval, as they are drawn.
pub(crate) fn ends(Interval { low, high }: Interval) -> [f64; 2] {
    [short(low), short(high)]
}
