//! `thalweg.lab.v1`: messages, client and server, generated from `proto/thalweg/lab/v1/echo.proto`.
#![allow(missing_docs, clippy::pedantic, reason = "generated code")]

thalweg::include_proto!("thalweg.lab.v1");
