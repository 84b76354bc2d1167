//! Resources used by a process over the windows of a cell.

use thalweg_measure::usage::{ProcessUsage, Usage};

use super::gathered::MergedCell;
use crate::record::LoadResult;

/// Resources used by a process, counted by the kernel over the valid windows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ResourceUsage {
    /// User time per operation, ns.
    pub(crate) user_ns: f64,
    /// System time per operation, ns.
    pub(crate) system_ns: f64,
    /// Voluntary and involuntary context switches per operation.
    pub(crate) switches: f64,
    /// Average number of busy processors: 1.0 is one all the time.
    pub(crate) processors: f64,
    /// Average number of threads that were runnable but waited for a processor.
    pub(crate) waiting: f64,
}

impl ResourceUsage {
    /// Returns processor time per operation in ns.
    pub(crate) fn ns(self) -> f64 {
        self.user_ns + self.system_ns
    }
}

impl MergedCell<'_> {
    /// Returns the client's usage in the valid windows, from the kernel or else from the client's own report.
    pub(crate) fn client(&self) -> Option<ResourceUsage> {
        self.used(|usage| &usage.client).or_else(|| self.own_account())
    }

    /// Returns the server's usage in the valid windows; `None` if the kernel did not report it.
    pub(crate) fn server(&self) -> Option<ResourceUsage> {
        self.used(|usage| &usage.server)
    }

    fn used(&self, side: fn(&Usage) -> &ProcessUsage) -> Option<ResourceUsage> {
        used(self.valid().filter_map(|(window, load)| Some((window.usage?, load.messages))), side)
    }

    fn own_account(&self) -> Option<ResourceUsage> {
        let sum = |of: fn(&LoadResult) -> f64| self.valid().map(|(_, load)| of(load)).sum::<f64>();
        let (window_ns, operations) = (sum(|load| load.duration_ns as f64), sum(|load| load.messages as f64));
        let (user_ns, system_ns) =
            (sum(|load| load.client_cpu.user_ns), sum(|load| load.client_cpu.system_ns));
        (window_ns > 0.0 && operations > 0.0 && user_ns + system_ns > 0.0).then(|| ResourceUsage {
            user_ns: user_ns / operations,
            system_ns: system_ns / operations,
            processors: (user_ns + system_ns) / window_ns,
            ..ResourceUsage::default()
        })
    }
}

/// Sums one side's usage over windows, each given with its number of operations.
pub(crate) fn used(
    windows: impl Iterator<Item = (Usage, u64)>,
    side: fn(&Usage) -> &ProcessUsage,
) -> Option<ResourceUsage> {
    let (mut used, mut window_ns, mut operations) = (ProcessUsage::default(), 0, 0);
    for (usage, of_window) in windows {
        let process = side(&usage);
        used.user_ns += process.user_ns;
        used.system_ns += process.system_ns;
        used.voluntary_switches += process.context_switches();
        used.waited_ns += process.waited_ns;
        window_ns += usage.window_ns;
        operations += of_window;
    }
    let of_operation = |total: u64| total as f64 / operations as f64;
    let of_time = |total: u64| total as f64 / window_ns as f64;
    (window_ns > 0 && operations > 0).then(|| ResourceUsage {
        user_ns: of_operation(used.user_ns),
        system_ns: of_operation(used.system_ns),
        switches: of_operation(used.voluntary_switches),
        processors: of_time(used.cpu_ns()),
        waiting: of_time(used.waited_ns),
    })
}
