//! The text format, compared with prost-reflect and in hand-written cases.

#[path = "../../../protobuf/tests/it/random.rs"]
mod random;
mod text_format;
mod text_random;
