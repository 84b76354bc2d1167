//! OTLP's messages, and its service.

pub(crate) use thalweg_load::export::pb::opentelemetry;
