//! Text forms of [ProtoJSON](https://protobuf.dev/programming-guides/json/): base64, times, field masks, quoted text
//! and numbers. Independent of messages.

pub(crate) mod base64;
pub(crate) mod calendar;
pub(crate) mod field_mask;
pub(crate) mod number;
pub(crate) mod quoted;
pub(crate) mod time;
