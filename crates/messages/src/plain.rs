//! The messages of `proto/shapes.proto` as plain Rust structs, for serde's codecs.
//!
//! Fields have the names of the `.proto` file. Missing values are `null` in JSON, the default of JSON libraries.
#![allow(missing_docs, reason = "the fields are those of the `.proto` file")]

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Person {
    pub name: String,
    pub age: i32,
    pub hobbies: Option<Vec<String>>,
    pub address: Option<Address>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Address {
    pub city: String,
    pub zip_code: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeveralData {
    pub a_float: f32,
    pub a_double: f64,
    pub an_int32: i32,
    pub an_int64: i64,
    pub a_bool: bool,
    pub a_string: String,
    pub strings: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Order {
    pub id: String,
    pub customer: String,
    pub email: String,
    pub created_at: i64,
    pub updated_at: i64,
    pub quantity: u32,
    pub price: f64,
    pub currency: String,
    pub paid: bool,
    pub gift: bool,
    pub note: String,
    pub coupon: String,
    pub warehouse: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Level {
    #[default]
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LogRecord {
    pub time_ns: u64,
    pub level: Level,
    pub service: String,
    pub message: String,
    pub trace: String,
    pub status: u32,
    pub took_ns: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    pub session: String,
    pub visitor: Option<Visitor>,
    pub campaign: Option<Campaign>,
    pub events: Vec<Event>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Visitor {
    pub id: u64,
    pub country: String,
    pub device: Option<Device>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Device {
    pub system: String,
    pub browser: String,
    pub width: u32,
    pub height: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    pub source: String,
    pub medium: String,
    pub name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub name: String,
    pub time_ms: i64,
    pub page: String,
    pub value: f64,
    pub labels: HashMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    pub sensor: String,
    pub begin_ms: i64,
    pub deltas: Vec<i32>,
    pub values: Vec<f64>,
    pub weights: Vec<f32>,
    pub counts: Vec<u64>,
    pub flags: Vec<bool>,
}
