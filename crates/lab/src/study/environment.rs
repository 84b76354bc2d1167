//! Where and with what a study was measured.

use std::fs;

use serde::{Deserialize, Serialize};

use crate::cpus::{CpuList, Topology};

/// Where a study was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model, as the kernel names it.
    pub cpu: String,
    /// Processors that the study may use.
    pub cores: usize,
    /// Physical cores that these are threads of; 0: unknown.
    #[serde(default)]
    pub physical_cores: usize,
    /// Sockets that these are on; 0: unknown.
    #[serde(default)]
    pub sockets: usize,
    /// The processors' clock before the study, MHz, as the kernel tells it; 0: unknown.
    #[serde(default)]
    pub mhz: f64,
    /// What sets the clock (`performance`, `powersave` …); empty: unknown, as in most virtual machines.
    #[serde(default)]
    pub governor: String,
    /// The kernel's name and release.
    pub kernel: String,
    /// How TCP decides when to send (`cubic`, `bbr` …); empty: unknown.
    #[serde(default)]
    pub tcp_congestion: String,
    /// Main memory, bytes.
    pub memory_bytes: u64,
    /// A virtual machine that gives free memory back to its host: the next use of such a page waits for the host.
    #[serde(default)]
    pub gives_memory_back: bool,
    /// How many threads ran or wanted to, on average over the minute before the study.
    #[serde(default)]
    pub load_average: f64,
}

/// With what a study was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Versions {
    /// Of the stack and the lab.
    pub thalweg: String,
    /// `release`, or `debug`, whose figures say nothing about the stack.
    pub build: String,
}

impl Machine {
    /// Whether TCP sends by a timer, at a rate that it estimates: over loopback that is what is measured then.
    pub(crate) fn is_paced(&self) -> bool {
        self.tcp_congestion.starts_with("bbr")
    }

    /// In what another machine differs, so that figures of both say nothing of each other: the name of each, and both
    /// values. What is not known of one of them, the clock of the moment and how busy it was are no difference; memory
    /// that differs by less than one part in a hundred is the same, as kernels keep more or less of it for themselves.
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

    /// The machine this runs on. What the kernel does not tell is `unknown` or 0.
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
        let (sockets, physical_cores) = Topology::this().sockets_and_cores();
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

/// The features of each memory balloon of a virtual machine, as the kernel writes them: a digit for each, the first of
/// number 0.
fn balloons(driver: &str) -> impl Iterator<Item = String> {
    let devices = fs::read_dir(driver).into_iter().flatten().flatten();
    devices.filter_map(|device| fs::read_to_string(device.path().join("features")).ok())
}

/// `VIRTIO_BALLOON_F_REPORTING` (virtio 1.2, section 5.5.3).
fn reports_free_pages(features: &str) -> bool {
    const REPORTING: usize = 5;
    features.as_bytes().get(REPORTING) == Some(&b'1')
}

impl Versions {
    /// This build's.
    pub fn this() -> Self {
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
    fn machines_differ_in_what_figures_depend_on() {
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
    fn a_balloon_says_whether_it_gives_memory_back() {
        assert!(reports_free_pages("0110010000\n"));
        assert!(!reports_free_pages("0110000000\n"));
        assert!(!reports_free_pages(""));
        assert_eq!(balloons("/nonexistent").count(), 0);
    }
}
