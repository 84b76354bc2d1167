//! Which processors a thread may run on: the client and the server of one measurement are kept apart.

use std::fmt;
use std::str::FromStr;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// A list of processors as Linux numbers them, written `0`, `0,2` or `0-3,8`. Never empty; sorted, without repeats.
///
/// ```
/// use thalweg_lab::cpus::CpuList;
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
    #[error("`{0}` is not a list of processors: write numbers and ranges, such as 0 or 0-3,8")]
    NotAList(String),
    /// A number is beyond what the kernel's mask holds.
    #[error("processor {0} is beyond the {max} that a mask can name", max = CpuSet::count())]
    TooLarge(usize),
}

impl CpuList {
    /// The processors that this thread may run on now.
    pub fn available() -> std::io::Result<Self> {
        let set = sched_getaffinity(Pid::from_raw(0))?;
        Ok(Self((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect()))
    }

    /// Two halves that share no processor: the first for the client, the second for the server.
    /// `None` when there is only one.
    pub(crate) fn halves(&self) -> Option<(Self, Self)> {
        let (client, server) = self.0.split_at(self.0.len() / 2);
        (!client.is_empty()).then(|| (Self(client.to_vec()), Self(server.to_vec())))
    }

    /// Those of them that `others` does not have; `None` when there are none.
    pub fn without(&self, others: &Self) -> Option<Self> {
        let rest: Vec<usize> = self.0.iter().copied().filter(|cpu| !others.0.contains(cpu)).collect();
        (!rest.is_empty()).then_some(Self(rest))
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
    /// Client and server on a half each of the processors that there are, if there are two.
    pub fn halves() -> std::io::Result<Self> {
        let (client_cpus, server_cpus) = CpuList::available()?.halves().unzip();
        Ok(Self { client_cpus, server_cpus, ..Self::default() })
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
    fn halves_share_nothing() {
        let halves = |text: &str| {
            let list: CpuList = text.parse().unwrap();
            list.halves().map(|(client, server)| (client.to_string(), server.to_string()))
        };
        assert_eq!(halves("0"), None);
        assert_eq!(halves("0,1"), Some(("0".into(), "1".into())));
        assert_eq!(halves("0-4"), Some(("0,1".into(), "2,3,4".into())));
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
