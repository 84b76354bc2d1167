//! Schemas, messages, JSON and MessagePack: one binary for all modules.

mod json;
mod json_fields;
mod json_random;
mod json_rows;
mod json_texts;
mod messages;
mod protoc;
mod random;
mod schema;
