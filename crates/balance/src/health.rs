//! Client-side health checking (gRFC A17): the messages of `grpc.health.v1.Health/Watch`, and an endpoint's health.

use std::sync::Arc;

use thalweg_core::Code;

use crate::endpoint::ConnectivityState;
use crate::wire::{Fields, MalformedMessage, push_bytes};

/// Path of the method that reports a server's health.
pub const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// Health of a connected endpoint, by its server's reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Health {
    /// Nothing was reported yet.
    #[default]
    Unknown,
    /// The service is served, or the server does not report health.
    Healthy,
    /// The service is not served, or its health cannot be known, for this reason.
    Unhealthy(Arc<str>),
}

impl Health {
    /// Encodes the request to watch a service; `""` is the whole server.
    pub fn request(service: &str) -> Vec<u8> {
        let mut request = Vec::new();
        if !service.is_empty() {
            push_bytes(&mut request, 1, service.as_bytes());
        }
        request
    }

    /// Returns the health by a response.
    ///
    /// # Errors
    /// Fails if `response` is not a `HealthCheckResponse`.
    pub fn of_response(response: &[u8], service: &str) -> Result<Self, MalformedMessage> {
        let mut status = 0;
        for field in Fields::new(response) {
            if let (1, value) = field? {
                status = value.varint()?;
            }
        }
        if status == SERVING {
            return Ok(Self::Healthy);
        }
        let name = match status {
            0 => "UNKNOWN",
            2 => "NOT_SERVING",
            3 => "SERVICE_UNKNOWN",
            _ => "an unknown status",
        };
        Ok(Self::Unhealthy(format!("health check of {}: {name}", Named(service)).into()))
    }

    /// Returns the health after a stream that ended with this status: a server without the method counts as healthy.
    pub fn of_end(code: Code, message: &str, service: &str) -> Self {
        match code {
            Code::Unimplemented => Self::Healthy,
            _ => Self::Unhealthy(
                format!("health check of {} failed: {}: {message}", Named(service), code.name()).into(),
            ),
        }
    }

    /// Returns the state that a policy sees of an endpoint whose connection is ready.
    pub fn state(&self) -> ConnectivityState {
        match self {
            Self::Unknown => ConnectivityState::Connecting,
            Self::Healthy => ConnectivityState::Ready,
            Self::Unhealthy(_) => ConnectivityState::TransientFailure,
        }
    }
}

/// `HealthCheckResponse.ServingStatus.SERVING`.
const SERVING: u64 = 1;

/// Name of a service in messages.
struct Named<'a>(&'a str);

impl std::fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            "" => f.write_str("the server"),
            service => write!(f, "service {service}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_the_service() {
        assert_eq!(Health::request(""), b"");
        assert_eq!(Health::request("a.B"), b"\x0a\x03a.B");
    }

    /// gRFC A17: only SERVING is healthy.
    #[test]
    fn health_by_response() {
        let check = |response: &[u8], state, reason: Option<&str>| {
            let health = Health::of_response(response, "a.B").expect("a message");
            let found = match &health {
                Health::Unhealthy(reason) => Some(&**reason),
                _ => None,
            };
            assert_eq!((health.state(), found), (state, reason), "{response:?}");
        };
        let failed = ConnectivityState::TransientFailure;
        check(b"\x08\x01", ConnectivityState::Ready, None);
        // An unknown field, and the last of several values.
        check(b"\x12\x01a\x08\x02\x08\x01", ConnectivityState::Ready, None);
        check(b"", failed, Some("health check of service a.B: UNKNOWN"));
        check(b"\x08\x02", failed, Some("health check of service a.B: NOT_SERVING"));
        check(b"\x08\x03", failed, Some("health check of service a.B: SERVICE_UNKNOWN"));
        check(b"\x08\x09", failed, Some("health check of service a.B: an unknown status"));
        for malformed in [&b"\x08"[..], b"\x0a\x01a", b"\xff"] {
            assert_eq!(Health::of_response(malformed, ""), Err(MalformedMessage));
        }
        assert_eq!(Health::default().state(), ConnectivityState::Connecting);
    }

    #[test]
    fn server_without_the_method_is_healthy() {
        assert_eq!(Health::of_end(Code::Unimplemented, "no such method", ""), Health::Healthy);
        let failed = Health::of_end(Code::Unavailable, "gone", "");
        let reason = "health check of the server failed: UNAVAILABLE: gone";
        assert_eq!(failed, Health::Unhealthy(reason.into()));
        assert_ne!(Health::of_end(Code::Ok, "", "").state(), ConnectivityState::Ready);
    }
}
