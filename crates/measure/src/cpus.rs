//! CPU lists and pinning, which keep the client and the server of a measurement on different CPUs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::str::FromStr;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A list of CPUs by their Linux numbers, parsed from texts such as `0`, `0,2` or `0-3,8`.
///
/// A parsed list is sorted, without duplicates and never empty.
///
/// ```
/// use thalweg_measure::cpus::CpuList;
///
/// let list: CpuList = "0-2,8".parse().unwrap();
/// assert_eq!(list.as_slice(), [0, 1, 2, 8]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuList(Vec<usize>);

/// An invalid CPU list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// The text is not a list of numbers and ranges.
    #[error("invalid CPU list `{0}`; use numbers and ranges, such as 0 or 0-3,8")]
    NotAList(String),
    /// A number exceeds the size of the affinity mask.
    #[error("CPU {0} is out of range; the highest number is {max}", max = CpuSet::count() - 1)]
    TooLarge(usize),
}

impl CpuList {
    /// Returns the CPUs that the calling thread may run on.
    pub fn available() -> std::io::Result<Self> {
        let set = sched_getaffinity(Pid::from_raw(0))?;
        Ok(Self((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect()))
    }

    /// Splits the list into two halves without a common core: the first for the client, the second for the server.
    ///
    /// Keeps hardware threads of a core together, because they compete for its execution units. Keeps cores of a socket
    /// together where possible. Returns `None` if there is only one core.
    fn halves(&self, topology: &Topology) -> Option<(Self, Self)> {
        let mut cores: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for &cpu in &self.0 {
            cores.entry(topology.position(cpu)).or_default().push(cpu);
        }
        let cores: Vec<Vec<usize>> = cores.into_values().collect();
        let (clients, servers) = cores.split_at(cores.len() / 2);
        let list = |cores: &[Vec<usize>]| {
            let mut cpus = cores.concat();
            cpus.sort_unstable();
            Self(cpus)
        };
        (!clients.is_empty()).then(|| (list(clients), list(servers)))
    }

    /// Returns the CPUs that are not in `others`, or `None` if there are none.
    pub fn without(&self, others: &Self) -> Option<Self> {
        let rest: Vec<usize> = self.0.iter().copied().filter(|cpu| !others.0.contains(cpu)).collect();
        (!rest.is_empty()).then_some(Self(rest))
    }

    /// Returns whether the lists have a CPU in common.
    pub fn shares_with(&self, others: &Self) -> bool {
        self.0.iter().any(|cpu| others.0.contains(cpu))
    }

    /// Returns the first `count` CPUs. `None` if there are fewer or `count` is 0.
    pub fn first(&self, count: usize) -> Option<Self> {
        self.0.get(..count).filter(|first| !first.is_empty()).map(|first| Self(first.to_vec()))
    }

    /// Returns the CPU numbers in ascending order.
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }

    /// Pins the calling thread, and all threads that it starts later, to these CPUs.
    pub fn pin_this_thread(&self) -> std::io::Result<()> {
        let mut set = CpuSet::new();
        for &cpu in &self.0 {
            set.set(cpu)?;
        }
        Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
    }
}

/// Socket and core of each CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology(BTreeMap<usize, CpuPosition>);

/// Socket and core of a CPU. The core is the lowest number of the CPUs that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CpuPosition {
    socket: usize,
    core: usize,
}

impl Topology {
    /// Reads the topology of the available CPUs from `/sys`. Omits CPUs that `/sys` does not describe.
    pub fn current() -> Self {
        let cpus = CpuList::available().map(|list| list.0).unwrap_or_default();
        let read = |cpu: usize, name: &str| {
            fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}")).ok()
        };
        let position = |cpu: usize| {
            let siblings =
                read(cpu, "thread_siblings_list").and_then(|text| text.trim().parse::<CpuList>().ok());
            let socket = read(cpu, "physical_package_id").and_then(|text| text.trim().parse().ok());
            let core = siblings.map_or(cpu, |siblings| siblings.0[0]);
            Some((cpu, CpuPosition { socket: socket?, core }))
        };
        Self(cpus.into_iter().filter_map(position).collect())
    }

    /// Returns the socket and the core of a CPU. An unknown CPU counts as a separate core on socket 0.
    fn position(&self, cpu: usize) -> (usize, usize) {
        self.0.get(&cpu).map_or((0, cpu), |position| (position.socket, position.core))
    }

    /// Returns the numbers of sockets and cores of the known CPUs; both are 0 if none is known.
    pub fn sockets_and_cores(&self) -> (usize, usize) {
        let sockets: BTreeSet<usize> = self.0.values().map(|position| position.socket).collect();
        let cores: BTreeSet<(usize, usize)> = self.0.keys().map(|&cpu| self.position(cpu)).collect();
        (sockets.len(), cores.len())
    }
}

/// CPUs and thread counts of clients and servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuAssignment {
    /// CPUs that clients are pinned to. `None`: no pinning.
    pub client_cpus: Option<CpuList>,
    /// CPUs that servers are pinned to. `None`: no pinning.
    pub server_cpus: Option<CpuList>,
    /// Threads per client. `None`: the client's own default.
    pub client_threads: Option<u32>,
    /// Threads per server. `None`: the server's own default.
    pub server_threads: Option<u32>,
}

impl CpuAssignment {
    /// Assigns half of the available cores to clients and the other half to servers. Pins nothing if there is only one
    /// core.
    pub fn halves() -> std::io::Result<Self> {
        let (client_cpus, server_cpus) = CpuList::available()?.halves(&Topology::current()).unzip();
        Ok(Self { client_cpus, server_cpus, ..Self::default() })
    }

    /// Applies the CPUs that the user chose. If only one side was chosen, the other side gets the remaining CPUs.
    pub fn chosen(self, client_cpus: Option<CpuList>, server_cpus: Option<CpuList>) -> Self {
        let available = CpuList::available().ok();
        let rest = |used: &Option<CpuList>| available.as_ref()?.without(used.as_ref()?);
        let (clients, servers) = (rest(&server_cpus), rest(&client_cpus));
        Self {
            client_cpus: client_cpus.or(clients).or(self.client_cpus),
            server_cpus: server_cpus.or(servers).or(self.server_cpus),
            ..self
        }
    }
}

impl FromStr for CpuList {
    type Err = CpuListError;

    fn from_str(text: &str) -> Result<Self, CpuListError> {
        let not_a_list = || CpuListError::NotAList(text.to_owned());
        let number = |text: &str| -> Result<usize, CpuListError> {
            let cpu = text.trim().parse().map_err(|_| not_a_list())?;
            if cpu < CpuSet::count() { Ok(cpu) } else { Err(CpuListError::TooLarge(cpu)) }
        };
        let mut cpus = Vec::new();
        for part in text.split(',') {
            match part.split_once('-') {
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last)?);
                    if first > last {
                        return Err(not_a_list());
                    }
                    cpus.extend(first..=last);
                }
                None => cpus.push(number(part)?),
            }
        }
        cpus.sort_unstable();
        cpus.dedup();
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, cpu) in self.0.iter().enumerate() {
            write!(f, "{}{cpu}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl TryFrom<String> for CpuList {
    type Error = CpuListError;

    fn try_from(text: String) -> Result<Self, CpuListError> {
        text.parse()
    }
}

impl From<CpuList> for String {
    fn from(list: CpuList) -> Self {
        list.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<&str, CpuListError>) {
        assert_eq!(
            text.parse::<CpuList>().map(|list| list.to_string()),
            expected.map(str::to_owned),
            "{text:?}"
        );
    }

    #[test]
    fn cpu_lists_are_parsed_sorted_and_deduplicated() {
        check("0", Ok("0"));
        check("3,1, 1", Ok("1,3"));
        check("0-2,8", Ok("0,1,2,8"));
        check("", Err(CpuListError::NotAList(String::new())));
        check("2-1", Err(CpuListError::NotAList("2-1".into())));
        check("0,x", Err(CpuListError::NotAList("0,x".into())));
        check("0-99999", Err(CpuListError::TooLarge(99999)));
    }

    #[test]
    fn halves_share_no_core() {
        let check = |text: &str, positions: &[(usize, usize, usize)], expected: Option<(&str, &str)>| {
            let positions = positions.iter().map(|&(cpu, socket, core)| (cpu, CpuPosition { socket, core }));
            let list: CpuList = text.parse().unwrap();
            let halves = list.halves(&Topology(positions.collect()));
            let halves = halves.map(|(client, server)| (client.to_string(), server.to_string()));
            let expected = expected.map(|(client, server)| (client.to_owned(), server.to_owned()));
            assert_eq!(halves, expected, "{text}");
        };
        // The topology is unknown.
        check("0", &[], None);
        check("0,1", &[], Some(("0", "1")));
        check("0-4", &[], Some(("0,1", "2,3,4")));
        // Both CPUs are threads of one core.
        check("0,1", &[(0, 0, 0), (1, 0, 0)], None);
        // Sibling threads have adjacent numbers, or numbers half the list apart.
        let adjacent = [(0, 0, 0), (1, 0, 0), (2, 0, 2), (3, 0, 2)];
        check("0-3", &adjacent, Some(("0,1", "2,3")));
        let separate = [(0, 0, 0), (1, 0, 1), (2, 0, 0), (3, 0, 1)];
        check("0-3", &separate, Some(("0,2", "1,3")));
        // CPU numbers alternate between sockets.
        let sockets = [(0, 0, 0), (1, 1, 1), (2, 0, 2), (3, 1, 3)];
        check("0-3", &sockets, Some(("0,2", "1,3")));
    }

    #[test]
    fn this_machine_has_no_more_sockets_than_cores_and_cpus() {
        let (sockets, cores) = Topology::current().sockets_and_cores();
        let cpus = CpuList::available().unwrap().0.len();
        assert!(sockets <= cores && cores <= cpus, "{sockets} {cores} {cpus}");
    }

    #[test]
    fn without_removes_other_cpus() {
        let without = |text: &str, others: &str| {
            let [list, others] = [text, others].map(|text| text.parse::<CpuList>().unwrap());
            list.without(&others).map(|rest| rest.to_string())
        };
        assert_eq!(without("0-3", "1,3,9").as_deref(), Some("0,2"));
        assert_eq!(without("0-1", "0-3"), None);
    }

    #[test]
    fn pinned_thread_may_run_on_its_cpu_only() {
        std::thread::spawn(|| {
            let first = CpuList(vec![CpuList::available().unwrap().0[0]]);
            first.pin_this_thread().unwrap();
            assert_eq!(CpuList::available().unwrap(), first);
        })
        .join()
        .unwrap();
    }
}
