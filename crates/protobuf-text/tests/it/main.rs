//! The text format beside prost-reflect, and as people write it.

#[path = "../../../protobuf/tests/it/random.rs"]
mod random;
mod text_format;
mod text_random;
