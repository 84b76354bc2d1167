//! The shapes in buffa's generated form, and reading all fields of their views.

#[path = "../../src/read.rs"]
pub(crate) mod read;

pub(crate) use generated::*;

use generated::__buffa::view::analytics::{PropertyView, SectionView};
use generated::__buffa::view::oneof::analytics::property::Value;
use read::{Read, read_views};

#[allow(warnings, clippy::all, clippy::pedantic, reason = "generated code")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/speed/speed.mod.rs"));
}

read_views! {
    SmallFlatView {
        request_id, status_code, message, latency_ms, cached, trace_id, retry_after_seconds, tags, region, bytes_sent
    }
    LogRecordView { timestamp_nanos, service, instance, severity, message, labels, line }
    AnalyticsView { event_id, timestamp, user_id, properties, sections }
    PropertyView { key, value }
    SectionView { name, depth, properties, sections }
    ArraysView { deltas, offsets, ids, samples, weights, flags }
    SeriesView { id, embedding, values, timestamps }
}

impl Read for Value<'_> {
    #[inline]
    fn read(&self) -> u64 {
        match self {
            Self::Text(text) => text.read(),
            Self::Number(number) => number.read(),
            Self::Ratio(ratio) => ratio.read(),
            Self::Flag(flag) => flag.read(),
        }
    }
}
