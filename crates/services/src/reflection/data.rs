//! Data of reflection: [`ReflectionData`].

use std::collections::BTreeSet;
use std::sync::Arc;

use thalweg::server::ServerHandle;

use super::descriptors::Descriptors;

/// Data that the reflection of one server returns.
#[derive(Debug)]
pub(super) struct ReflectionData {
    pub(super) descriptors: Arc<Descriptors>,
    pub(super) advertised: Option<Arc<BTreeSet<String>>>,
    pub(super) server: ServerHandle,
}

impl ReflectionData {
    /// Returns the listed services in alphabetical order.
    pub(super) fn services(&self) -> Vec<&str> {
        match &self.advertised {
            Some(advertised) => advertised.iter().map(String::as_str).collect(),
            None => self.server.services(),
        }
    }
}
