//! Whether the figures of a measurement may be used.
//!
//! It is determined once, at the end of the measurement. Everything that shows or compares the figures reads that
//! value.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::figures::percent;
use crate::programs::BusyProgram;
use crate::statistics::median;
use crate::wording::{counted, enumerated};

/// The reasons why the figures of a measurement must not be used. In JSON a list, empty for valid figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Validity {
    /// Reasons, the most important first.
    pub reasons: Vec<Reason>,
}

/// A reason why figures must not be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// Kind of reason.
    pub cause: Cause,
    /// A clause without a full stop.
    pub text: String,
    /// The share of CPU time that other programs or the host used, or that a quota withheld.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
}

/// Kind of reason why figures are unusable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// There are no figures.
    NotMeasured,
    /// Calls failed.
    CallsFailed,
    /// Other programs ran on the CPUs while client or server was ready to run.
    OtherPrograms,
    /// The host of the virtual machine took CPU time (`steal`).
    Steal,
    /// A CPU quota (cgroup) throttled client or server.
    Quota,
    /// The client's CPUs were busy, so the figures show the client's limit rather than the server's.
    ClientLimit,
    /// The client reported that its figures must not be used.
    Reported,
}

impl Reason {
    /// Returns a reason without a share.
    pub fn new(cause: Cause, text: impl Into<String>) -> Self {
        Self { cause, text: text.into(), share: None }
    }
}

impl Validity {
    /// Returns whether the figures may be used.
    pub fn is_valid(&self) -> bool {
        self.reasons.is_empty()
    }

    /// Returns all reasons as one text, or `None` for valid figures.
    pub fn invalid_reason(&self) -> Option<String> {
        let texts = || self.reasons.iter().map(|reason| reason.text.as_str());
        (!self.is_valid()).then(|| texts().collect::<Vec<_>>().join("; "))
    }
}

impl FromIterator<Reason> for Validity {
    fn from_iter<I: IntoIterator<Item = Reason>>(reasons: I) -> Self {
        Self { reasons: reasons.into_iter().collect() }
    }
}

/// The invalid windows of a study. Displays as a sentence: how many, why, and what to do.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbance {
    /// Number of invalid windows, at least 1.
    pub invalid: usize,
    /// Number of all windows.
    pub windows: usize,
    /// The most frequent cause, with the text of its first window and the median of its shares.
    reason: Reason,
    programs: Vec<BusyProgram>,
    remedy: &'static str,
}

impl Disturbance {
    /// Summarizes the windows of a study. `programs` are the other programs that ran. `None` if every window is valid.
    pub fn of<'v>(windows: impl IntoIterator<Item = &'v Validity>, programs: &[BusyProgram]) -> Option<Self> {
        let windows: Vec<&Validity> = windows.into_iter().collect();
        let first: Vec<&Reason> = windows.iter().filter_map(|window| window.reasons.first()).collect();
        let of = |cause: Cause| first.iter().filter(move |reason| reason.cause == cause);
        // Selects the first of equally frequent causes.
        let most = first.iter().rev().max_by_key(|reason| of(reason.cause).count())?;
        let share = median(of(most.cause).filter_map(|reason| reason.share));
        let text = of(most.cause).next()?.text.clone();
        Some(Self {
            invalid: first.len(),
            windows: windows.len(),
            reason: Reason { cause: most.cause, text, share },
            programs: programs.to_vec(),
            remedy: "use a longer --budget",
        })
    }

    /// Sets the advice for when the programs cannot be closed. Default: `use a longer --budget`.
    pub fn with_remedy(self, remedy: &'static str) -> Self {
        Self { remedy, ..self }
    }

    /// Returns whether more than a tenth of the windows is invalid, so that a study may lack its answer.
    pub fn is_widespread(&self) -> bool {
        self.invalid * 10 > self.windows
    }

    /// Returns the cause and the advice: `2 other programs (rustc, cargo) used 55 % of the processors; close them or
    /// …`.
    fn advice(&self) -> String {
        let share = |what: &str| match self.reason.share {
            Some(share) => format!("{} of {what}", percent(share.min(1.0))),
            None => format!("a part of {what}"),
        };
        match self.reason.cause {
            Cause::OtherPrograms => {
                let (who, them) = match self.programs.as_slice() {
                    [] => ("other programs".to_owned(), "them"),
                    [one] => (format!("another program ({})", one.name), "it"),
                    several => (several_programs(several), "them"),
                };
                format!("{who} used {}; close {them} or {}", share("the processors"), self.remedy)
            }
            Cause::Steal => format!(
                "the host of this virtual machine took {}; use another machine or {}",
                share("the processors’ time"),
                self.remedy
            ),
            Cause::Quota => format!(
                "a CPU quota (cgroup) withheld {}; raise the quota or measure outside of it",
                share("the time")
            ),
            Cause::NotMeasured | Cause::CallsFailed | Cause::ClientLimit | Cause::Reported => {
                self.reason.text.clone()
            }
        }
    }
}

/// Maximum number of programs named in [`Disturbance`]; others are counted.
const PROGRAMS_NAMED_MAX: usize = 3;

fn several_programs(programs: &[BusyProgram]) -> String {
    let named: Vec<String> =
        programs.iter().take(PROGRAMS_NAMED_MAX).map(|program| program.name.clone()).collect();
    let more = if programs.len() > named.len() { "the busiest: " } else { "" };
    format!("{} other programs ({more}{})", programs.len(), enumerated(&named))
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let windows = counted(self.windows as u64, "window");
        let are = if self.invalid == 1 { "is" } else { "are" };
        if self.invalid == self.windows {
            write!(f, "No window of {windows} is valid: {}.", self.advice())
        } else {
            write!(f, "{} of {windows} {are} not valid: {}.", self.invalid, self.advice())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn others(share: f64) -> Validity {
        let text = "the client waited".to_owned();
        Validity { reasons: vec![Reason { cause: Cause::OtherPrograms, text, share: Some(share) }] }
    }

    fn program(name: &str) -> BusyProgram {
        BusyProgram { name: name.to_owned(), processors: 0.5 }
    }

    #[test]
    fn most_frequent_cause_is_reported_with_advice() {
        let failed = Validity { reasons: vec![Reason::new(Cause::NotMeasured, "no server")] };
        let check = |windows: &[Validity], programs: &[BusyProgram], expected: &str| {
            assert_eq!(Disturbance::of(windows, programs).unwrap().to_string(), expected);
        };
        let all = [others(0.5), others(0.55), others(0.9)];
        check(
            &all,
            &[program("rustc"), program("cargo")],
            "No window of 3 windows is valid: 2 other programs (rustc and cargo) used 55 % of the processors; \
             close them or use a longer --budget.",
        );
        check(
            &[Validity::default(), failed.clone(), others(0.25), others(0.35)],
            &[program("rustc")],
            "3 of 4 windows are not valid: another program (rustc) used 30 % of the processors; close it or use a \
             longer --budget.",
        );
        let rare: Vec<Validity> =
            (0..10).map(|at| if at == 0 { others(0.5) } else { Validity::default() }).collect();
        let is_widespread = |windows: &[Validity]| Disturbance::of(windows, &[]).unwrap().is_widespread();
        assert!(is_widespread(&all) && !is_widespread(&rare));
        let one = [Validity::default(), failed];
        check(&one, &[], "1 of 2 windows is not valid: no server.");
        assert_eq!(Disturbance::of(&[Validity::default()], &[program("rustc")]), None);
    }

    #[test]
    fn validity_is_list_of_reasons_in_json() {
        let json = serde_json::to_value(others(0.5)).unwrap();
        assert_eq!(json[0]["cause"], "other_programs");
        assert_eq!(serde_json::from_value::<Validity>(json).unwrap(), others(0.5));
        assert_eq!(serde_json::to_string(&Validity::default()).unwrap(), "[]");
    }
}
