//! Schemas, messages, JSON and MessagePack: one binary for all modules.

mod json;
mod json_fields;
mod json_packed;
mod json_random;
mod json_strings;
mod messages;
mod protoc;
mod random;
mod schema;
