//! Empty replacements for the measurement types, without the feature `opentelemetry`.

#![allow(
    clippy::unused_self,
    clippy::trivially_copy_pass_by_ref,
    reason = "same signatures as the stateful variants"
)]

use std::io::ErrorKind;
use std::sync::Arc;

use http::HeaderMap;
use thalweg_balance::Locality;
use thalweg_balance::policy::EndpointWeight;
use thalweg_http2::ErrorCode;

use super::span_source::SpanSource;
use crate::method::Method;
use crate::status::{Code, Status};

pub(crate) type Setup = ();

#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelMeasure(());

impl ChannelMeasure {
    pub(crate) fn new(_setup: &Setup, _target: impl FnOnce() -> String) -> Self {
        Self(())
    }

    #[inline]
    pub(crate) fn call(&self, _method: &Method) -> CallMeasure {
        CallMeasure(())
    }

    pub(crate) fn resolved(&self) {}

    pub(crate) fn fell_back_to_round_robin(&self) {}

    pub(crate) fn endpoint(&self, _locality: &Locality) -> EndpointMeasure {
        EndpointMeasure(Self(()))
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct EndpointMeasure(ChannelMeasure);

impl EndpointMeasure {
    pub(crate) fn channel(&self) -> &ChannelMeasure {
        &self.0
    }

    pub(crate) fn attempt_failed(&self) {}

    pub(crate) fn weight(&self, _weight: EndpointWeight) {}

    pub(crate) fn lanes(&self, _change: isize) {}
}

#[derive(Debug, Default)]
pub(crate) struct ConnectionMeasure(());

impl ConnectionMeasure {
    pub(crate) fn opened(&self, _endpoint: &EndpointMeasure, _is_secure: bool) {}

    pub(crate) fn note_going_away(&self, _code: ErrorCode) {}

    pub(crate) fn note_error(&self, _kind: ErrorKind) {}

    pub(crate) fn note_shutdown(&self) {}

    pub(crate) fn disconnected(&self) {}
}

#[derive(Clone, Debug, Default)]
pub(crate) struct ServerMeasure(());

impl ServerMeasure {
    pub(crate) fn new(_setup: &Setup) -> Self {
        Self(())
    }

    pub(crate) fn is_traced(&self) -> bool {
        false
    }

    #[inline]
    pub(crate) fn call(
        &self,
        _method: Option<&Arc<str>>,
        _span_source: impl FnOnce() -> Option<Arc<dyn SpanSource>>,
    ) -> CallMeasure {
        CallMeasure(())
    }
}

/// Never exists.
pub(crate) enum ServerTrace {}

impl ServerTrace {
    pub(crate) fn sent(&self, _plain: usize, _wire: usize) {
        match *self {}
    }

    pub(crate) fn note_outcome(&self, _outcome: Result<(), &Status>) {
        match *self {}
    }
}

pub(crate) fn drop_with_status<T>(_status: &Status, left: T) {
    drop(left);
}

#[derive(Clone, Debug, Default)]
pub(crate) struct CallMeasure(());

impl CallMeasure {
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        false
    }

    pub(crate) fn count(&self) {}

    #[inline]
    pub(crate) fn sent(&self, _bytes: usize) {}

    #[inline]
    pub(crate) fn handler_started(&self, _bytes: usize) {}

    pub(crate) fn handler_not_started(&self) {}

    pub(crate) fn refused(&self, _status: &Status) {}

    #[inline]
    pub(crate) fn sent_to(&self, _peer: &str) {}

    #[inline]
    pub(crate) fn sent_message(&self, _wire: usize, _plain: impl FnOnce() -> usize) {}

    #[inline]
    pub(crate) fn received_message(&self, _wire: usize, _is_compressed: bool) {}

    #[inline]
    pub(crate) fn decompressed(&self, _plain: usize, _wire: usize) {}

    #[inline]
    pub(crate) fn is_traced(&self) -> bool {
        false
    }

    #[inline]
    pub(crate) fn inject(&self, _metadata: &HeaderMap) -> Option<Box<HeaderMap>> {
        None
    }

    #[inline]
    pub(crate) fn inject_again(&self) -> Option<Box<HeaderMap>> {
        None
    }

    #[inline]
    pub(crate) fn waited(&self) {}

    #[inline]
    pub(crate) fn keep_sent(&self) {}

    #[inline]
    pub(crate) fn drop_sent(&self) {}

    #[inline]
    pub(crate) fn note_outcome(&self, _outcome: Result<(), &Status>) {}

    #[inline]
    pub(crate) fn server_trace(&self) -> Option<&ServerTrace> {
        None
    }

    pub(crate) fn end_attempt(&self, _status: &Status) -> usize {
        0
    }

    pub(crate) fn start_hedge(&self, _previous: u32) -> Self {
        Self::default()
    }

    pub(crate) fn sent_as(&self, _call: &Self) {}

    pub(crate) fn adopt(&self, _hedge: &Self) {}

    #[inline]
    pub(crate) fn start_attempt(&self, _previous: u32, _is_transparent: bool) {}

    #[inline]
    pub(crate) fn end(&self, _code: Code) {}

    #[inline]
    pub(crate) fn fail(&self, _status: &Status) {}
}
