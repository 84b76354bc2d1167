//! Serialized histograms of latencies.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram as Counts;
use hdrhistogram::serialization::{Deserializer, Serializer, V2Serializer};
use serde::de::Error;
use serde::{Deserialize, Serialize};

/// The counts of a [`Distribution`](crate::distribution::Distribution) in the compact HdrHistogram V2 format. In JSON a
/// base64 string.
///
/// The default has no counts: the histogram was omitted from a result to save space. In JSON it is the empty string.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Histogram(Vec<u8>);

impl Histogram {
    pub(crate) fn of(counts: &Counts<u64>) -> Self {
        let mut bytes = Vec::new();
        V2Serializer::new().serialize(counts, &mut bytes).expect("writing to a Vec does not fail");
        Self(bytes)
    }

    /// Returns whether the histogram was omitted.
    pub fn is_left_out(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the counts, or `None` if they were omitted.
    pub(crate) fn counts(&self) -> Option<Counts<u64>> {
        read(&self.0)
    }

    /// Returns the recorded values in ascending order, each with its count. Values that are equal to the histogram's
    /// digits are one entry, with the largest value of that range.
    pub fn recorded(&self) -> Vec<(u64, u64)> {
        let recorded = |counts: Counts<u64>| {
            let all = counts.iter_recorded();
            all.map(|it| (it.value_iterated_to(), it.count_since_last_iteration())).collect()
        };
        self.counts().map(recorded).unwrap_or_default()
    }
}

fn read(mut bytes: &[u8]) -> Option<Counts<u64>> {
    Deserializer::new().deserialize(&mut bytes).ok()
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.recorded()).finish()
    }
}

impl Serialize for Histogram {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = STANDARD.decode(text).map_err(|error| D::Error::custom(format!("histogram: {error}")))?;
        if bytes.is_empty() || read(&bytes).is_some() {
            Ok(Self(bytes))
        } else {
            Err(D::Error::custom("histogram: not in HdrHistogram V2 format"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_is_base64_in_json_and_damaged_ones_are_rejected() {
        let mut counts = Counts::new_with_bounds(1, 1000, 3).unwrap();
        counts.record_n(7, 2).unwrap();
        let histogram = Histogram::of(&counts);
        assert_eq!(histogram.recorded(), [(7, 2)]);
        let json = serde_json::to_string(&histogram).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&json).unwrap(), histogram);
        let left_out: Histogram = serde_json::from_str("\"\"").unwrap();
        assert!(left_out.is_left_out() && left_out == Histogram::default() && !histogram.is_left_out());
        assert_eq!(serde_json::to_string(&left_out).unwrap(), "\"\"");
        let error = |json: &str| serde_json::from_str::<Histogram>(json).unwrap_err().to_string();
        assert!(
            error("\"no base64\"").starts_with("histogram: Invalid symbol"),
            "{}",
            error("\"no base64\"")
        );
        assert!(error("\"AAAA\"").starts_with("histogram: not in HdrHistogram V2 format"));
    }
}
