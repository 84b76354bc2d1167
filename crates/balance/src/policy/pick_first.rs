//! `pick_first`: all calls go to one endpoint, which has all addresses (gRFC A62).

/// Settings of `pick_first`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PickFirstConfig {
    /// Whether the endpoints are shuffled before their addresses are tried in order; off by default.
    pub shuffle_address_list: bool,
}

impl PickFirstConfig {
    /// Sets whether the endpoints are shuffled.
    pub fn shuffle_address_list(mut self, shuffle: bool) -> Self {
        self.shuffle_address_list = shuffle;
        self
    }
}
