//! Limits of reflection: [`ReflectionLimits`].

use std::time::Duration;

/// Limits on data and time of server reflection. Each has a default.
///
/// They apply to all requests of a [`Reflection`](super::Reflection) together.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReflectionLimits {
    /// Maximum time for each response. Default: 10 s.
    pub response_timeout: Duration,
    /// Maximum total time spent waiting for responses. Default: 120 s.
    pub total_timeout: Duration,
    /// Maximum number of files, and of listed services. Default: 10,000.
    pub files_max: usize,
    /// Maximum size of all files, and of one response, in bytes. Default: 64 MiB.
    pub bytes_max: usize,
    /// Maximum number of imports in all files, without duplicates in a file. Default: 100,000.
    pub imports_max: usize,
    /// Maximum size of all responses in bytes. Default: 512 MiB, because some servers resend files with each response.
    pub received_bytes_max: usize,
}

impl ReflectionLimits {
    /// Returns the defaults with this response timeout.
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
