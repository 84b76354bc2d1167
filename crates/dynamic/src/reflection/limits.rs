//! Bounds of the exchange with a server: [`ReflectionLimits`].

use std::time::Duration;

/// What a server may send by reflection, and how long it may take. Each limit has a default.
///
/// All of a [`Reflection`](super::Reflection) together counts, whatever it is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReflectionLimits {
    /// Maximum time for each response; 10 s by default.
    pub response_timeout: Duration,
    /// Maximum time spent waiting for responses in all; 120 s by default.
    pub total_timeout: Duration,
    /// Maximum number of files, and of listed services; 10,000 by default.
    pub files_max: usize,
    /// Maximum size of all files together, and of one response, in bytes; 64 MiB by default.
    pub bytes_max: usize,
    /// Maximum number of imports of all files together, each counted once a file; 100,000 by default.
    pub imports_max: usize,
    /// Maximum size of all responses together, in bytes; 512 MiB by default. Some servers send the same files with
    /// each response.
    pub received_bytes_max: usize,
}

impl ReflectionLimits {
    /// The defaults, with `timeout` for each response.
    pub fn with_response_timeout(timeout: Duration) -> Self {
        Self { response_timeout: timeout, ..Self::default() }
    }
}

impl Default for ReflectionLimits {
    fn default() -> Self {
        Self {
            response_timeout: Duration::from_secs(10),
            total_timeout: Duration::from_secs(120),
            files_max: 10_000,
            bytes_max: 64 << 20,
            imports_max: 100_000,
            received_bytes_max: 512 << 20,
        }
    }
}
