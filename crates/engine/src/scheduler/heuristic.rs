//! Heuristics that a benchmark can switch off, to show what each of them gains.

/// A heuristic of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heuristic {
    /// A batch that arrived while the connection slept is handled in chunks.
    ReadChunks,
    /// Batches are handled in chunks only if the thread has no other connection.
    ChunksIfAlone,
    /// On a multi-threaded runtime, ready callers run before the driver.
    CallersFirst,
    /// A stream that yields is distinguished from one that has nothing available.
    Yields,
    /// A driver that has read much yields to the tasks that it has woken.
    ReadBreak,
    /// One connection spins for all connections of its thread.
    ThreadPoller,
}

/// Environment variable with the names of heuristics to switch off, separated by commas. Read once.
#[cfg(feature = "testing")]
const VARIABLE: &str = "THALWEG_WITHOUT";

impl Heuristic {
    /// Returns whether the heuristic is used: always, without the feature `testing`.
    #[cfg(feature = "testing")]
    pub(crate) fn is_on(self) -> bool {
        static OFF: std::sync::LazyLock<Vec<Heuristic>> = std::sync::LazyLock::new(|| {
            let names = std::env::var(VARIABLE).unwrap_or_default();
            names.split(',').filter(|name| !name.is_empty()).map(Heuristic::of_name).collect()
        });
        !OFF.contains(&self)
    }

    #[cfg(not(feature = "testing"))]
    #[expect(clippy::unused_self, reason = "the same interface as with the feature")]
    #[inline]
    pub(crate) fn is_on(self) -> bool {
        true
    }

    #[cfg(feature = "testing")]
    fn of_name(name: &str) -> Self {
        match name {
            "read-chunks" => Self::ReadChunks,
            "chunks-if-alone" => Self::ChunksIfAlone,
            "callers-first" => Self::CallersFirst,
            "yields" => Self::Yields,
            "read-break" => Self::ReadBreak,
            "thread-poller" => Self::ThreadPoller,
            // With a misspelled name, a benchmark would show no gain.
            _ => panic!("{VARIABLE}: no heuristic is named {name}"),
        }
    }
}
