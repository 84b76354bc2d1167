//! Ratios between two codecs over messages.

use std::fmt;

use thalweg_measure::figures::{ratio, times};

use super::analyse::CodecFigures;
use super::line::Operation;
use super::results::CodecResults;
use super::tables::MessageSize;

/// Figure that is compared between two codecs.
#[derive(Clone, Copy)]
pub(super) enum ComparedFigure {
    /// Time per conversion.
    Time(Operation),
    /// Bytes of a message.
    Bytes(fn(&MessageSize) -> f64),
}

/// A figure with the name of its message.
pub(super) type OfMessage<'a> = (f64, &'a str);

/// Smallest and largest value of a figure.
#[derive(Clone, Copy)]
pub(super) struct Span<'a> {
    pub(super) least: OfMessage<'a>,
    pub(super) most: OfMessage<'a>,
}

impl ComparedFigure {
    /// Returns the figure of codec `one` divided by that of `other`, for each message that both have.
    pub(super) fn ratios<'a>(
        self,
        (results, analysis): (&'a CodecResults, &CodecFigures),
        one: &str,
        other: &str,
    ) -> Vec<OfMessage<'a>> {
        let figure = |data: &str, codec: &str| match self {
            Self::Time(operation) => analysis.line(data, codec, operation).map(|line| line.ns),
            Self::Bytes(of) => results.size(data, codec).map(of),
        };
        let names = results.data.iter().map(|data| data.name.as_str());
        names.filter_map(|data| Some((figure(data, one)? / figure(data, other)?, data))).collect()
    }
}

impl<'a> Span<'a> {
    pub(super) fn of(mut figures: Vec<OfMessage<'a>>) -> Option<Self> {
        figures.sort_by(|a, b| a.0.total_cmp(&b.0));
        Some(Self { least: *figures.first()?, most: *figures.last()? })
    }

    /// Formats `0.95 to 2.1 times`, or `2.1 times` for one message.
    pub(super) fn plain(&self) -> String {
        let most = times(self.most.0);
        if self.is_of_one() { most } else { format!("{} to {most}", ratio(self.least.0)) }
    }

    /// Formats `0.79 % (small) to 12 % (order)`, or `12 %` for one message.
    pub(super) fn named(&self, least: fn(f64) -> String, most: fn(f64) -> String) -> String {
        let ((low, first), (high, last)) = (self.least, self.most);
        if self.is_of_one() {
            most(high)
        } else {
            format!("{} ({first}) to {} ({last})", least(low), most(high))
        }
    }

    fn is_of_one(&self) -> bool {
        self.least.1 == self.most.1
    }
}

/// Formats `0.95 (samples) to 2.1 times (order)`.
impl fmt::Display for Span<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.named(ratio, times))
    }
}
