//! Number of connections that this machine allows.

use std::fs;
use std::io;
use std::str::FromStr;

use thalweg_measure::descriptors;
use thalweg_measure::wording::enumerated;

/// Reserve of file descriptors for files, listeners and the runtime.
const OTHER_DESCRIPTORS: u64 = 200;
/// Reserve of ports for other programs.
const OTHER_PORTS: u64 = 1000;

/// Limits on loopback connections between a client and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Hard limit of a process's file descriptors.
    descriptors: u64,
    /// Ephemeral ports for clients, one for each connection; 0 if unknown.
    ports: u64,
}

/// A number of connections, or the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Many {
    /// This number.
    Number(u32),
    /// The maximum that [`Reach`] allows.
    Max,
}

impl Reach {
    /// Returns this machine's limits. Raises the soft limit of descriptors to the hard limit, for this process and its
    /// children.
    pub fn raised() -> io::Result<Self> {
        let descriptors = descriptors::raise()?;
        let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
        let ends: Vec<u64> = range.split_ascii_whitespace().filter_map(|end| end.parse().ok()).collect();
        let ports = match ends[..] {
            [low, high] => (high + 1).saturating_sub(low),
            _ => 0,
        };
        Ok(Self { descriptors, ports })
    }

    /// Returns the highest number of connections.
    pub(crate) fn most(self) -> u32 {
        let by_ports = if self.ports == 0 { u64::MAX } else { self.ports.saturating_sub(OTHER_PORTS) };
        u32::try_from(self.descriptors.saturating_sub(OTHER_DESCRIPTORS).min(by_ports)).unwrap_or(u32::MAX)
    }

    /// Returns the possible numbers without duplicates, ascending, and a text about the others.
    pub fn allowed(self, requested: &[Many]) -> (Vec<u32>, Option<String>) {
        let most = self.most();
        let number = |many: &Many| match many {
            Many::Number(connections) => *connections,
            Many::Max => most,
        };
        let mut requested: Vec<u32> = requested.iter().map(number).collect();
        requested.sort_unstable();
        requested.dedup();
        let (allowed, beyond): (Vec<u32>, Vec<u32>) = requested.into_iter().partition(|&it| it <= most);
        let beyond: Vec<String> = beyond.iter().map(ToString::to_string).collect();
        (allowed, (!beyond.is_empty()).then(|| self.cut(&beyond)))
    }

    fn cut(self, beyond: &[String]) -> String {
        let Self { descriptors, ports } = self;
        let (most, beyond) = (self.most(), enumerated(beyond));
        let by_descriptors = descriptors.saturating_sub(OTHER_DESCRIPTORS);
        let limit = if u64::from(most) == by_descriptors {
            format!("a process can have {descriptors} file descriptors (`ulimit -Hn`)")
        } else {
            format!("clients have {ports} ports (net.ipv4.ip_local_port_range)")
        };
        format!("The grid ends at {most} connections and omits {beyond}: {limit}.")
    }
}

/// Error for a text that is not a number of connections.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid number of connections `{0}`; use a number from 1 or max")]
pub struct NotMany(String);

impl FromStr for Many {
    type Err = NotMany;

    fn from_str(text: &str) -> Result<Self, NotMany> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let number = text.parse().ok().filter(|&number| number > 0);
        number.map(Self::Number).ok_or_else(|| NotMany(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduced_connection_counts_have_a_reason() {
        let requested = ["10", "1", "10", "20000", "max"].map(|text| text.parse().unwrap());
        let (allowed, cut) = Reach { descriptors: 4096, ports: 28_232 }.allowed(&requested);
        assert_eq!(allowed, [1, 10, 3896]);
        let cut = cut.unwrap();
        assert!(cut.contains("omits 20000:") && cut.contains("4096 file descriptors"), "{cut}");
        let (allowed, cut) = Reach { descriptors: 1 << 20, ports: 11_000 }.allowed(&requested);
        assert_eq!(allowed, [1, 10, 10_000]);
        assert!(cut.unwrap().contains("11000 ports"));
        assert_eq!(Reach { descriptors: 1 << 20, ports: 0 }.allowed(&requested[..2]).1, None);
        assert!("0".parse::<Many>().is_err() && "many".parse::<Many>().is_err());
    }
}
