//! Which service has which status.

use std::collections::BTreeMap;

use super::pb::health_check_response::ServingStatus as Wire;

/// Whether a service takes calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServingStatus {
    /// It is not known.
    Unknown,
    /// It does.
    Serving,
    /// It does not, or shall not be sent any.
    NotServing,
}

impl From<ServingStatus> for Wire {
    fn from(status: ServingStatus) -> Self {
        match status {
            ServingStatus::Unknown => Self::Unknown,
            ServingStatus::Serving => Self::Serving,
            ServingStatus::NotServing => Self::NotServing,
        }
    }
}

impl From<Wire> for ServingStatus {
    fn from(status: Wire) -> Self {
        match status {
            // The latter is for `Watch` alone.
            Wire::Unknown | Wire::ServiceUnknown => Self::Unknown,
            Wire::Serving => Self::Serving,
            Wire::NotServing => Self::NotServing,
        }
    }
}

/// The statuses of a server as they were set.
#[derive(Debug)]
pub(super) struct Statuses {
    by_service: BTreeMap<String, ServingStatus>,
    /// Whatever they are, nothing serves.
    pub(super) is_shut_down: bool,
}

impl Default for Statuses {
    /// The server as a whole serves; nothing is known of services.
    fn default() -> Self {
        Self { by_service: BTreeMap::from([(String::new(), ServingStatus::Serving)]), is_shut_down: false }
    }
}

impl Statuses {
    /// The status of `service`; `None` where it has none.
    pub(super) fn get(&self, service: &str) -> Option<ServingStatus> {
        self.by_service.get(service).map(|status| self.shown(*status))
    }

    /// Whether that changed anything.
    pub(super) fn set(&mut self, service: &str, status: ServingStatus) -> bool {
        match self.by_service.get_mut(service) {
            Some(known) => std::mem::replace(known, status) != status,
            None => self.by_service.insert(service.to_owned(), status).is_none(),
        }
    }

    /// Whether that changed anything.
    pub(super) fn clear(&mut self, service: &str) -> bool {
        self.by_service.remove(service).is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.by_service.len()
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (&str, ServingStatus)> {
        self.by_service.iter().map(|(service, status)| (service.as_str(), self.shown(*status)))
    }

    fn shown(&self, status: ServingStatus) -> ServingStatus {
        if self.is_shut_down { ServingStatus::NotServing } else { status }
    }
}
