//! State of a policy per endpoint, kept from one decision to the next.

use std::collections::HashMap;

use super::EndpointView;

/// A value per endpoint, at the endpoint's position in the last list.
#[derive(Debug)]
pub(super) struct PerEndpoint<T> {
    ids: Vec<u64>,
    values: Vec<T>,
}

impl<T> PerEndpoint<T> {
    /// Adapts to the list: drops the values of endpoints that left, and creates those of new ones.
    pub(super) fn align(
        &mut self,
        endpoints: &[EndpointView<'_>],
        new: impl Fn(&EndpointView<'_>) -> T,
    ) -> &mut [T] {
        if !self.ids.iter().copied().eq(endpoints.iter().map(|view| view.id)) {
            let mut known: HashMap<u64, T> = self.ids.drain(..).zip(self.values.drain(..)).collect();
            self.ids.extend(endpoints.iter().map(|view| view.id));
            self.values
                .extend(endpoints.iter().map(|view| known.remove(&view.id).unwrap_or_else(|| new(view))));
        }
        &mut self.values
    }
}

impl<T> Default for PerEndpoint<T> {
    fn default() -> Self {
        Self { ids: Vec::new(), values: Vec::new() }
    }
}
