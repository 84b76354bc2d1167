//! What [ProtoJSON](https://protobuf.dev/programming-guides/json/) writes into strings and numbers: base64, times,
//! field masks, and the numbers themselves. Nothing here knows of messages.

pub(crate) mod base64;
pub(crate) mod field_mask;
pub(crate) mod number;
pub(crate) mod time;
