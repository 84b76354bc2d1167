//! Heuristics that a benchmark can switch off, to show what each of them gains.

/// A heuristic of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heuristic {
    /// A batch that gathered while a connection slept is handled in chunks.
    ReadChunks,
    /// The thread of a batch that is handled in chunks has no other connection.
    ChunksIfAlone,
    /// On a multi-threaded runtime, ready callers run before the driver.
    CallersFirst,
    /// A stream that yields is told from one that has nothing at hand.
    Yields,
    /// A driver that has read much lets the tasks run that it has woken.
    ReadBreak,
    /// One connection spins for all connections of its thread.
    ThreadPoller,
}

/// Environment variable with the names of heuristics to switch off, separated by commas. Read once.
#[cfg(feature = "testing")]
const VARIABLE: &str = "THALWEG_WITHOUT";

impl Heuristic {
    /// Whether it is used: always, without the feature `testing`.
    #[cfg(feature = "testing")]
    pub(crate) fn is_on(self) -> bool {
        static OFF: std::sync::LazyLock<Vec<Heuristic>> = std::sync::LazyLock::new(|| {
            let names = std::env::var(VARIABLE).unwrap_or_default();
            names.split(',').filter(|name| !name.is_empty()).map(Heuristic::of_name).collect()
        });
        !OFF.contains(&self)
    }

    #[cfg(not(feature = "testing"))]
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
            // A benchmark that measured nothing would say that the heuristic gains nothing.
            _ => panic!("{VARIABLE}: no heuristic is named {name}"),
        }
    }
}
