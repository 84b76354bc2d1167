//! Description of the machine and the build of a measurement.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::cpus::{CpuList, Topology};

/// The machine that a study ran on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// CPU model as the kernel names it, or `unknown`.
    pub cpu: String,
    /// Number of CPUs that the study may use.
    pub cores: usize,
    /// Number of physical cores of these CPUs; 0: unknown.
    #[serde(default)]
    pub physical_cores: usize,
    /// Number of sockets of these CPUs; 0: unknown.
    #[serde(default)]
    pub sockets: usize,
    /// CPU frequency before the study, in MHz; 0: unknown.
    #[serde(default)]
    pub mhz: f64,
    /// Frequency governor (`performance`, `powersave` …); empty: unknown, as in most virtual machines.
    #[serde(default)]
    pub governor: String,
    /// Name and release of the kernel.
    pub kernel: String,
    /// TCP congestion control (`cubic`, `bbr` …); empty: unknown.
    #[serde(default)]
    pub tcp_congestion: String,
    /// Main memory in bytes; 0: unknown.
    pub memory_bytes: u64,
    /// Whether a virtual machine returns free memory to its host. The next access to such a page then waits for the
    /// host.
    #[serde(default)]
    pub gives_memory_back: bool,
    /// Load average over the minute before the study: number of running or runnable threads; 0 if unknown.
    #[serde(default)]
    pub load_average: f64,
}

/// Version and build profile of a study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Versions {
    /// Version of thalweg.
    pub thalweg: String,
    /// `release` or `debug`. Results of a debug build are meaningless.
    pub build: String,
}

impl Machine {
    /// Returns whether TCP paces its packets (BBR). Over loopback, the result then reflects the pacing, not the stack.
    pub fn is_paced(&self) -> bool {
        self.tcp_congestion.starts_with("bbr")
    }

    /// Returns the differences that make results of the two machines incomparable: name, this value, the other value.
    ///
    /// Ignores the CPU frequency, the load average and values that are unknown on one side. Ignores up to 1 %
    /// difference in memory, because kernels reserve different amounts.
    pub fn differences(&self, other: &Self) -> Vec<(&'static str, String, String)> {
        let known = |number: usize| if number == 0 { String::new() } else { number.to_string() };
        let memory =
            |bytes: u64| (bytes > 0).then(|| format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)));
        let (most, least) =
            (self.memory_bytes.max(other.memory_bytes), self.memory_bytes.min(other.memory_bytes));
        let is_same_memory = (most - least) as f64 <= most as f64 * 0.01;
        let memory = |bytes: u64| if is_same_memory { None } else { memory(bytes) }.unwrap_or_default();
        let of = |machine: &Self| {
            [
                ("processor", machine.cpu.clone()),
                ("processors", machine.cores.to_string()),
                ("cores", known(machine.physical_cores)),
                ("sockets", known(machine.sockets)),
                ("governor", machine.governor.clone()),
                ("kernel", machine.kernel.clone()),
                ("TCP congestion control", machine.tcp_congestion.clone()),
                ("memory", memory(machine.memory_bytes)),
            ]
        };
        let pairs = of(self).into_iter().zip(of(other));
        pairs
            .filter(|((_, one), (_, other))| !one.is_empty() && !other.is_empty() && one != other)
            .map(|((name, one), (_, other))| (name, one, other))
            .collect()
    }

    /// Describes the current machine. Values that the kernel does not provide are `unknown`, empty or 0.
    pub fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value_of = |text: &str, key: &str| {
            text.lines()
                .filter_map(|line| line.split_once(':'))
                .find(|(name, _)| name.trim() == key)
                .map(|(_, value)| value.trim().to_owned())
        };
        let memory_kib = value_of(&read("/proc/meminfo"), "MemTotal")
            .and_then(|text| text.split(' ').next()?.parse::<u64>().ok());
        let (sockets, physical_cores) = Topology::current().sockets_and_cores();
        Self {
            cpu: value_of(&read("/proc/cpuinfo"), "model name").unwrap_or_else(|| "unknown".to_owned()),
            cores: CpuList::available().map_or(1, |list| list.as_slice().len()),
            physical_cores,
            sockets,
            mhz: value_of(&read("/proc/cpuinfo"), "cpu MHz").and_then(|mhz| mhz.parse().ok()).unwrap_or(0.0),
            governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").trim().to_owned(),
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            tcp_congestion: read("/proc/sys/net/ipv4/tcp_congestion_control").trim().to_owned(),
            memory_bytes: memory_kib.unwrap_or(0) * 1024,
            gives_memory_back: balloons("/sys/bus/virtio/drivers/virtio_balloon")
                .any(|features| reports_free_pages(&features)),
            load_average: read("/proc/loadavg")
                .split(' ')
                .next()
                .and_then(|text| text.parse().ok())
                .unwrap_or(0.0),
        }
    }
}

/// Returns the feature bits of each virtio memory balloon, as the kernel writes them: one digit per bit, bit 0 first.
fn balloons(driver: &str) -> impl Iterator<Item = String> {
    let devices = fs::read_dir(driver).into_iter().flatten().flatten();
    devices.filter_map(|device| fs::read_to_string(device.path().join("features")).ok())
}

/// Returns whether the balloon has `VIRTIO_BALLOON_F_REPORTING` (virtio 1.2, section 5.5.3).
fn reports_free_pages(features: &str) -> bool {
    const REPORTING: usize = 5;
    features.as_bytes().get(REPORTING) == Some(&b'1')
}

impl Versions {
    /// Describes the current build.
    pub fn current() -> Self {
        Self {
            thalweg: env!("CARGO_PKG_VERSION").to_owned(),
            build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_ignore_load_and_unknown_values() {
        let this = Machine::this();
        let check = |change: fn(&mut Machine), expected: &[&str]| {
            let mut other = this.clone();
            change(&mut other);
            let names: Vec<&str> = this.differences(&other).iter().map(|(name, ..)| *name).collect();
            assert_eq!(names, expected);
        };
        check(|_| (), &[]);
        check(|it| (it.mhz, it.load_average) = (1.0, 99.0), &[]);
        check(|it| it.physical_cores = 0, &[]);
        check(|it| it.memory_bytes += it.memory_bytes / 1000, &[]);
        check(|it| it.cpu = "another".to_owned(), &["processor"]);
        check(|it| (it.cores, it.kernel) = (it.cores + 1, "Linux 1".to_owned()), &["processors", "kernel"]);
        check(|it| it.memory_bytes *= 2, &["memory"]);
    }

    #[test]
    fn free_page_reporting_is_read_from_balloon_features() {
        assert!(reports_free_pages("0110010000\n"));
        assert!(!reports_free_pages("0110000000\n"));
        assert!(!reports_free_pages(""));
        assert_eq!(balloons("/nonexistent").count(), 0);
    }
}
