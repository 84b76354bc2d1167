//! Which processors a thread may run on: the client and the server of one measurement are kept apart.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::str::FromStr;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A list of processors as Linux numbers them, written `0`, `0,2` or `0-3,8`. Never empty; sorted, without repeats.
///
/// ```
/// use thalweg_drive::cpus::CpuList;
///
/// let list: CpuList = "0-2,8".parse().unwrap();
/// assert_eq!(list.as_slice(), [0, 1, 2, 8]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CpuList(Vec<usize>);

/// What is wrong with a list of processors.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpuListError {
    /// The text is not a list.
    #[error("`{0}` is not a list of processors; use numbers and ranges, such as 0 or 0-3,8")]
    NotAList(String),
    /// A number is beyond what the kernel's mask holds.
    #[error("processor {0} is out of range; the highest number is {max}", max = CpuSet::count() - 1)]
    TooLarge(usize),
}

impl CpuList {
    /// The processors that this thread may run on now.
    pub fn available() -> std::io::Result<Self> {
        let set = sched_getaffinity(Pid::from_raw(0))?;
        Ok(Self((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect()))
    }

    /// Two halves that share no core: the first for the client, the second for the server. Processors of one core,
    /// which take its units from each other, stay together, and so do cores of a socket as far as that goes. `None`
    /// when there is only one core.
    fn halves(&self, topology: &Topology) -> Option<(Self, Self)> {
        let mut cores: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for &cpu in &self.0 {
            cores.entry(topology.place(cpu)).or_default().push(cpu);
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

    /// Those of them that `others` does not have; `None` when there are none.
    pub fn without(&self, others: &Self) -> Option<Self> {
        let rest: Vec<usize> = self.0.iter().copied().filter(|cpu| !others.0.contains(cpu)).collect();
        (!rest.is_empty()).then_some(Self(rest))
    }

    /// There is one that both have.
    pub fn shares_with(&self, others: &Self) -> bool {
        self.0.iter().any(|cpu| others.0.contains(cpu))
    }

    /// The first so many of them; `None` where there are fewer, or none is asked for.
    pub fn first(&self, count: usize) -> Option<Self> {
        self.0.get(..count).filter(|first| !first.is_empty()).map(|first| Self(first.to_vec()))
    }

    /// The processors' numbers, ascending.
    pub fn as_slice(&self) -> &[usize] {
        &self.0
    }

    /// Keeps the calling thread, and every thread it starts from now on, on these processors.
    pub fn pin_this_thread(&self) -> std::io::Result<()> {
        let mut set = CpuSet::new();
        for &cpu in &self.0 {
            set.set(cpu)?;
        }
        Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
    }
}

/// Where processors lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topology(BTreeMap<usize, Place>);

/// A processor's socket, and its core: the lowest number of those that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    socket: usize,
    core: usize,
}

impl Topology {
    /// This machine's, as `/sys` tells it. What it does not tell is a core of its own on socket 0.
    pub fn this() -> Self {
        let cpus = CpuList::available().map(|list| list.0).unwrap_or_default();
        let told = |cpu: usize, name: &str| {
            fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}")).ok()
        };
        let place = |cpu: usize| {
            let siblings =
                told(cpu, "thread_siblings_list").and_then(|text| text.trim().parse::<CpuList>().ok());
            let socket = told(cpu, "physical_package_id").and_then(|text| text.trim().parse().ok());
            let core = siblings.map_or(cpu, |siblings| siblings.0[0]);
            Some((cpu, Place { socket: socket?, core }))
        };
        Self(cpus.into_iter().filter_map(place).collect())
    }

    /// Socket and core.
    fn place(&self, cpu: usize) -> (usize, usize) {
        self.0.get(&cpu).map_or((0, cpu), |place| (place.socket, place.core))
    }

    /// How many sockets and cores those processors have that this program may run on.
    pub fn sockets_and_cores(&self) -> (usize, usize) {
        let sockets: BTreeSet<usize> = self.0.values().map(|place| place.socket).collect();
        let cores: BTreeSet<(usize, usize)> = self.0.keys().map(|&cpu| self.place(cpu)).collect();
        (sockets.len(), cores.len())
    }
}

/// Which processors clients and servers run on, and on how many threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuAssignment {
    /// Processors that clients are kept on; `None`: wherever the lab may run.
    pub client_cpus: Option<CpuList>,
    /// Processors that servers are kept on.
    pub server_cpus: Option<CpuList>,
    /// How many threads each client has; `None`: as many as it takes by itself.
    pub client_threads: Option<u32>,
    /// How many threads each server has.
    pub server_threads: Option<u32>,
}

impl CpuAssignment {
    /// Client and server on a half each of the cores that there are, if there are two.
    pub fn halves() -> std::io::Result<Self> {
        let (client_cpus, server_cpus) = CpuList::available()?.halves(&Topology::this()).unzip();
        Ok(Self { client_cpus, server_cpus, ..Self::default() })
    }

    /// The same with the processors that were asked for; where one side's were, the other gets the rest.
    pub fn chosen(self, client_cpus: Option<CpuList>, server_cpus: Option<CpuList>) -> Self {
        let available = CpuList::available().ok();
        let rest = |taken: &Option<CpuList>| available.as_ref()?.without(taken.as_ref()?);
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
    fn lists_are_read_sorted_without_repeats() {
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
        let check = |text: &str, places: &[(usize, usize, usize)], expected: Option<(&str, &str)>| {
            let places = places.iter().map(|&(cpu, socket, core)| (cpu, Place { socket, core }));
            let list: CpuList = text.parse().unwrap();
            let halves = list.halves(&Topology(places.collect()));
            let halves = halves.map(|(client, server)| (client.to_string(), server.to_string()));
            let expected = expected.map(|(client, server)| (client.to_owned(), server.to_owned()));
            assert_eq!(halves, expected, "{text}");
        };
        // Nothing is known of them.
        check("0", &[], None);
        check("0,1", &[], Some(("0", "1")));
        check("0-4", &[], Some(("0,1", "2,3,4")));
        // Two threads of one core.
        check("0,1", &[(0, 0, 0), (1, 0, 0)], None);
        // Siblings numbered next to each other, and half the list apart.
        let beside = [(0, 0, 0), (1, 0, 0), (2, 0, 2), (3, 0, 2)];
        check("0-3", &beside, Some(("0,1", "2,3")));
        let apart = [(0, 0, 0), (1, 0, 1), (2, 0, 0), (3, 0, 1)];
        check("0-3", &apart, Some(("0,2", "1,3")));
        // Sockets that take turns in the numbers.
        let sockets = [(0, 0, 0), (1, 1, 1), (2, 0, 2), (3, 1, 3)];
        check("0-3", &sockets, Some(("0,2", "1,3")));
    }

    #[test]
    fn this_machine_has_a_socket_and_a_core() {
        let (sockets, cores) = Topology::this().sockets_and_cores();
        let cpus = CpuList::available().unwrap().0.len();
        assert!(sockets <= cores && cores <= cpus, "{sockets} {cores} {cpus}");
    }

    #[test]
    fn what_is_taken_away_is_gone() {
        let without = |text: &str, others: &str| {
            let [list, others] = [text, others].map(|text| text.parse::<CpuList>().unwrap());
            list.without(&others).map(|rest| rest.to_string())
        };
        assert_eq!(without("0-3", "1,3,9").as_deref(), Some("0,2"));
        assert_eq!(without("0-1", "0-3"), None);
    }

    #[test]
    fn a_pinned_thread_sees_its_own_processor_only() {
        std::thread::spawn(|| {
            let first = CpuList(vec![CpuList::available().unwrap().0[0]]);
            first.pin_this_thread().unwrap();
            assert_eq!(CpuList::available().unwrap(), first);
        })
        .join()
        .unwrap();
    }
}
