//! The messages of `proto/shapes.proto` as a Rust program has them that knows no Protobuf: what serde's codecs convert.
//!
//! Fields bear the names of the `.proto` file. What is absent is `null` in JSON, as JSON libraries write it that are
//! not told otherwise.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) age: i32,
    pub(crate) hobbies: Option<Vec<String>>,
    pub(crate) address: Option<Address>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Address {
    pub(crate) city: String,
    pub(crate) zip_code: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SeveralData {
    pub(crate) a_float: f32,
    pub(crate) a_double: f64,
    pub(crate) an_int32: i32,
    pub(crate) an_int64: i64,
    pub(crate) a_bool: bool,
    pub(crate) a_string: String,
    pub(crate) strings: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) id: String,
    pub(crate) customer: String,
    pub(crate) email: String,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
    pub(crate) quantity: u32,
    pub(crate) price: f64,
    pub(crate) currency: String,
    pub(crate) paid: bool,
    pub(crate) gift: bool,
    pub(crate) note: String,
    pub(crate) coupon: String,
    pub(crate) warehouse: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(crate) enum Level {
    #[default]
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct LogRecord {
    pub(crate) time_ns: u64,
    pub(crate) level: Level,
    pub(crate) service: String,
    pub(crate) message: String,
    pub(crate) trace: String,
    pub(crate) status: u32,
    pub(crate) took_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Visit {
    pub(crate) session: String,
    pub(crate) visitor: Option<Visitor>,
    pub(crate) campaign: Option<Campaign>,
    pub(crate) events: Vec<Event>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Visitor {
    pub(crate) id: u64,
    pub(crate) country: String,
    pub(crate) device: Option<Device>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Device {
    pub(crate) system: String,
    pub(crate) browser: String,
    pub(crate) width: u32,
    pub(crate) height: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Campaign {
    pub(crate) source: String,
    pub(crate) medium: String,
    pub(crate) name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) time_ms: i64,
    pub(crate) page: String,
    pub(crate) value: f64,
    pub(crate) labels: HashMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Samples {
    pub(crate) sensor: String,
    pub(crate) begin_ms: i64,
    pub(crate) deltas: Vec<i32>,
    pub(crate) values: Vec<f64>,
    pub(crate) weights: Vec<f32>,
    pub(crate) counts: Vec<u64>,
    pub(crate) flags: Vec<bool>,
}
