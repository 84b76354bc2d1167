//! What there is to tell: [`Known`].

use std::collections::BTreeSet;
use std::sync::Arc;

use thalweg::server::ServerHandle;

use super::descriptors::Descriptors;

/// What reflection of one server can tell.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) descriptors: Arc<Descriptors>,
    pub(super) advertised: Option<Arc<BTreeSet<String>>>,
    pub(super) server: ServerHandle,
}

impl Known {
    /// The names of the services that are listed, in the order of the alphabet.
    pub(super) fn services(&self) -> Vec<&str> {
        match &self.advertised {
            Some(advertised) => advertised.iter().map(String::as_str).collect(),
            None => self.server.services(),
        }
    }
}
