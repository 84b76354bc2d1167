//! What a process uses, read from outside: so it is known alike of every stack, and no stack is asked to measure
//! itself.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

use crate::load::{ProcessUsage, Usage};

/// What a client's and a server's process have used at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    taken: Instant,
    client: ProcessSample,
    server: ProcessSample,
}

/// What one process has used since it began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ProcessSample {
    /// On a processor, all threads, those that have ended included.
    cpu: Duration,
    ticks: Ticks,
    /// Of each thread that is there, by its number.
    switches: Vec<(u32, Switches)>,
    /// How long each thread that is there was ready to run and did not, by its number.
    waited: Vec<(u32, Duration)>,
}

/// Ticks of the kernel's clock that found the process in user space and in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    user: u64,
    system: u64,
}

/// Context switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Switches {
    voluntary: u64,
    involuntary: u64,
}

impl Sample {
    /// Reads both processes' accounts.
    pub(crate) fn take(client: u32, server: u32) -> io::Result<Self> {
        let taken = Instant::now();
        Ok(Self { taken, client: ProcessSample::take(client)?, server: ProcessSample::take(server)? })
    }

    /// What was used since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Usage {
        Usage {
            window_ns: nanoseconds(self.taken - earlier.taken),
            client: self.client.since(&earlier.client),
            server: self.server.since(&earlier.server),
        }
    }
}

impl ProcessSample {
    fn take(pid: u32) -> io::Result<Self> {
        let cpu = cpu_time(pid)?;
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let ticks = Ticks::in_stat(&stat).ok_or_else(|| io::Error::other("/proc/PID/stat has no times"))?;
        let (mut switches, mut waited) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let entry = entry?;
            let thread = entry.file_name().to_str().and_then(|name| name.parse().ok());
            // A thread may have ended since the listing.
            let status = fs::read_to_string(entry.path().join("status"));
            let schedule = fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
            if let (Some(thread), Ok(status)) = (thread, status) {
                switches.push((thread, Switches::in_status(&status)));
                waited.push((thread, waited_in(&schedule)));
            }
        }
        Ok(Self { cpu, ticks, switches, waited })
    }

    fn since(&self, earlier: &Self) -> ProcessUsage {
        let cpu_ns = nanoseconds(self.cpu.saturating_sub(earlier.cpu));
        let system_ns = (cpu_ns as f64 * self.ticks.system_share_since(earlier.ticks)).round() as u64;
        let mut switches = Switches::default();
        for (thread, now) in &self.switches {
            let before = earlier.switches.iter().find(|(earlier, _)| earlier == thread);
            let before = before.map_or(Switches::default(), |(_, before)| *before);
            switches.voluntary += now.voluntary.saturating_sub(before.voluntary);
            switches.involuntary += now.involuntary.saturating_sub(before.involuntary);
        }
        ProcessUsage {
            user_ns: cpu_ns - system_ns,
            system_ns,
            voluntary_switches: switches.voluntary,
            involuntary_switches: switches.involuntary,
            waited_ns: nanoseconds(self.waited_since(earlier)),
        }
    }
}

impl ProcessSample {
    /// Of all threads that are there, together.
    fn waited_since(&self, earlier: &Self) -> Duration {
        let since = |(thread, now): &(u32, Duration)| {
            let before = earlier.waited.iter().find(|(earlier, _)| earlier == thread);
            now.saturating_sub(before.map_or(Duration::ZERO, |(_, before)| *before))
        };
        self.waited.iter().map(since).sum()
    }
}

/// The second number of `/proc/PID/task/TID/schedstat`: ns on a run queue. Zero where the kernel does not count it.
fn waited_in(schedstat: &str) -> Duration {
    let waited = schedstat.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok());
    Duration::from_nanos(waited.unwrap_or(0))
}

impl Ticks {
    /// Fields 14 and 15 of `/proc/PID/stat`. They are counted from behind the name, field 2, which stands in brackets
    /// and may hold anything.
    fn in_stat(stat: &str) -> Option<Self> {
        let (_, behind) = stat.rsplit_once(')')?;
        let mut fields = behind.split_ascii_whitespace().skip(11).map_while(|field| field.parse().ok());
        Some(Self { user: fields.next()?, system: fields.next()? })
    }

    /// Of the time since `earlier`, or where no tick has passed of all the time, how much was the kernel's: 0 to 1.
    fn system_share_since(self, earlier: Self) -> f64 {
        let (user, system) =
            (self.user.saturating_sub(earlier.user), self.system.saturating_sub(earlier.system));
        match (user + system, self.user + self.system) {
            (0, 0) => 0.0,
            (0, all) => self.system as f64 / all as f64,
            (passed, _) => system as f64 / passed as f64,
        }
    }
}

impl Switches {
    /// The lines `voluntary_ctxt_switches` and `nonvoluntary_ctxt_switches` of `/proc/PID/task/TID/status`.
    fn in_status(status: &str) -> Self {
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        Self { voluntary: value("voluntary_ctxt_switches"), involuntary: value("nonvoluntary_ctxt_switches") }
    }
}

/// The processor time of a process with all its threads, those that have ended included. Exact, unlike
/// `/proc/PID/stat`, which counts in 10 ms.
fn cpu_time(pid: u32) -> io::Result<Duration> {
    let pid = i32::try_from(pid).map_err(io::Error::other)?;
    let clock: ClockId = clock_getcpuclockid(Pid::from_raw(pid))?;
    Ok(clock.now()?.into())
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let check = |stat: &str, expected: Option<(u64, u64)>| {
            assert_eq!(Ticks::in_stat(stat).map(|ticks| (ticks.user, ticks.system)), expected, "{stat}");
        };
        check("7 (peer) S 1 7 7 0 -1 4194560 103 0 0 0 31 14 0 0 20 0 1 0 9 8 7", Some((31, 14)));
        check("7 (a) R (b)) S 1 7 7 0 -1 4194560 103 0 0 0 31 14 0 0 20 0 1 0 9", Some((31, 14)));
        check("7 (peer) S 1 7 7 0 -1 4194560 103 0 0 0 31", None);
        check("", None);
    }

    #[test]
    fn switches_are_read_by_their_names() {
        let status = "Name:\tpeer\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(Switches::in_status(status), Switches { voluntary: 150, involuntary: 545 });
        assert_eq!(Switches::in_status("Name:\tpeer\n"), Switches::default());
    }

    #[test]
    fn waiting_for_a_processor_is_the_second_number() {
        assert_eq!(waited_in("2871446126 1503 9142\n"), Duration::from_nanos(1503));
        assert_eq!(waited_in(""), Duration::ZERO);
    }

    #[test]
    fn time_is_divided_as_the_ticks_are_and_threads_are_told_apart() {
        let switches = |voluntary, involuntary| Switches { voluntary, involuntary };
        let before = ProcessSample {
            cpu: Duration::from_millis(100),
            ticks: Ticks { user: 5, system: 5 },
            switches: vec![(1, switches(10, 1)), (2, switches(1000, 0))],
            waited: vec![(1, Duration::from_millis(10)), (2, Duration::from_millis(500))],
        };
        // Thread 2 has ended, thread 3 has begun.
        let after = ProcessSample {
            cpu: Duration::from_millis(400),
            ticks: Ticks { user: 15, system: 25 },
            switches: vec![(1, switches(15, 3)), (3, switches(7, 0))],
            waited: vec![(1, Duration::from_millis(30)), (3, Duration::from_millis(4))],
        };
        let usage = after.since(&before);
        assert_eq!((usage.user_ns, usage.system_ns, usage.cpu_ns()), (100_000_000, 200_000_000, 300_000_000));
        assert_eq!((usage.voluntary_switches, usage.involuntary_switches), (12, 2));
        assert_eq!(usage.waited_ns, 24_000_000);
        // No tick has passed: all that is known is the share so far.
        let soon = ProcessSample { cpu: Duration::from_millis(104), ..before.clone() };
        assert_eq!((soon.since(&before).user_ns, soon.since(&before).system_ns), (2_000_000, 2_000_000));
    }

    /// A shell that does what the script says, and waits to be killed.
    struct Shell(Child);

    impl Shell {
        /// Returns when the script has printed a line.
        fn run(script: &str) -> Self {
            let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            Self(child)
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn a_busy_process_uses_time_and_one_that_waits_does_not() {
        let busy = Shell::run("echo; while :; do :; done");
        let idle = Shell::run("echo; exec sleep 1000");
        let before = Sample::take(busy.0.id(), idle.0.id()).unwrap();
        let mut usage = before.since(&before);
        assert_eq!(usage.client, ProcessUsage::default());
        // However slow the machine, the busy one gets there.
        while usage.client.cpu_ns() < 50_000_000 {
            std::thread::sleep(Duration::from_millis(5));
            usage = Sample::take(busy.0.id(), idle.0.id()).unwrap().since(&before);
        }
        assert!(usage.server.cpu_ns() < usage.client.cpu_ns(), "{usage:?}");
        assert!(usage.window_ns >= 25_000_000, "{usage:?}");
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        assert!(Sample::take(child.id(), std::process::id()).is_err());
    }
}
