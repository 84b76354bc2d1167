//! Statuses by service.

use std::collections::BTreeMap;

use super::pb::health_check_response::ServingStatus as WireStatus;

/// Whether a service accepts calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServingStatus {
    /// Unknown.
    Unknown,
    /// Accepts calls.
    Serving,
    /// Does not accept calls, or should not receive any.
    NotServing,
}

impl From<ServingStatus> for WireStatus {
    fn from(status: ServingStatus) -> Self {
        match status {
            ServingStatus::Unknown => Self::Unknown,
            ServingStatus::Serving => Self::Serving,
            ServingStatus::NotServing => Self::NotServing,
        }
    }
}

impl From<WireStatus> for ServingStatus {
    fn from(status: WireStatus) -> Self {
        match status {
            // `ServiceUnknown` is only sent by `Watch`.
            WireStatus::Unknown | WireStatus::ServiceUnknown => Self::Unknown,
            WireStatus::Serving => Self::Serving,
            WireStatus::NotServing => Self::NotServing,
        }
    }
}

/// Statuses of a server as set.
#[derive(Debug)]
pub(super) struct Statuses {
    by_service: BTreeMap<String, ServingStatus>,
    /// Whether everything is reported as not serving.
    pub(super) is_shut_down: bool,
}

impl Default for Statuses {
    /// Returns a serving server without services.
    fn default() -> Self {
        Self { by_service: BTreeMap::from([(String::new(), ServingStatus::Serving)]), is_shut_down: false }
    }
}

impl Statuses {
    /// Returns the status of `service`, or `None` if it has none.
    pub(super) fn get(&self, service: &str) -> Option<ServingStatus> {
        self.by_service.get(service).map(|status| self.effective(*status))
    }

    /// Sets a status. Returns whether it changed.
    pub(super) fn set(&mut self, service: &str, status: ServingStatus) -> bool {
        match self.by_service.get_mut(service) {
            Some(known) => std::mem::replace(known, status) != status,
            None => self.by_service.insert(service.to_owned(), status).is_none(),
        }
    }

    /// Removes a status. Returns whether there was one.
    pub(super) fn clear(&mut self, service: &str) -> bool {
        self.by_service.remove(service).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.by_service.len()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, ServingStatus)> {
        self.by_service.iter().map(|(service, status)| (service.as_str(), self.effective(*status)))
    }

    fn effective(&self, status: ServingStatus) -> ServingStatus {
        if self.is_shut_down { ServingStatus::NotServing } else { status }
    }
}
