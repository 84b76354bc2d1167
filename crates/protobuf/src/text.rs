//! What [ProtoJSON](https://protobuf.dev/programming-guides/json/) writes into strings and numbers: base64, times,
//! field masks, text in quotes, and the numbers themselves. Nothing here knows of messages.

pub(crate) mod base64;
pub(crate) mod calendar;
pub(crate) mod field_mask;
pub(crate) mod number;
pub(crate) mod quoted;
pub(crate) mod time;
