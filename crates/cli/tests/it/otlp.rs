//! OTLP messages and service.

pub(crate) use thalweg_load::export::pb::opentelemetry;
