//! What a process uses, read from outside: so it is known alike of every stack, and no stack is asked to measure
//! itself.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

use crate::cpus::CpuList;
use crate::load::{ProcessUsage, Usage};

/// A tick of `/proc/stat`, in which the kernel tells what processors did: USER_HZ is 100 on all that Linux runs on.
const TICK_MS: u64 = 10;

/// Both ends of what is measured.
#[derive(Clone, Debug)]
pub(crate) struct Sides {
    /// The driver.
    pub(crate) client: Side,
    /// The server.
    pub(crate) server: Side,
}

/// One end.
#[derive(Clone, Debug)]
pub(crate) struct Side {
    /// Its number.
    pub(crate) process: u32,
    /// Processors that it is kept on; `None`: wherever it likes, and so does the other.
    pub(crate) cpus: Option<CpuList>,
}

/// What a client's and a server's process have used at one moment.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    taken: Instant,
    client: ProcessSample,
    server: ProcessSample,
    /// What the processors of each side have done; `None` where no side is kept on any.
    processors: Option<[Processors; 2]>,
    /// There are some that both sides have.
    is_shared: bool,
}

/// What some processors have done since the machine began, whoever ran there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Processors {
    busy: Duration,
    /// They were ready to run, and the host ran something else.
    stolen: Duration,
}

/// What one process has used since it began, with those that it started and that are there.
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

impl Sides {
    /// Reads the accounts of both processes, and of the processors that they are kept on.
    pub(crate) fn sample(&self) -> io::Result<Sample> {
        let taken = Instant::now();
        let (client, server) =
            (ProcessSample::take(self.client.process)?, ProcessSample::take(self.server.process)?);
        let processors = match (&self.client.cpus, &self.server.cpus) {
            (Some(clients), Some(servers)) => {
                let stat = fs::read_to_string("/proc/stat")?;
                Some([clients, servers].map(|cpus| Processors::in_stat(&stat, cpus)))
            }
            _ => None,
        };
        let cpus = self.client.cpus.as_ref().zip(self.server.cpus.as_ref());
        let is_shared = cpus.is_some_and(|(clients, servers)| clients.shares_with(servers));
        Ok(Sample { taken, client, server, processors, is_shared })
    }
}

impl Sample {
    /// What was used since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Usage {
        let mut usage = Usage {
            window_ns: nanoseconds(self.taken - earlier.taken),
            client: self.client.since(&earlier.client),
            server: self.server.since(&earlier.server),
            server_memory: None,
        };
        if let (Some(now), Some(before)) = (self.processors, earlier.processors) {
            // Where both sides are kept on the same processors, the other side is no program that disturbs.
            let both_ns = usage.client.cpu_ns() + usage.server.cpu_ns();
            let sides = [&mut usage.client, &mut usage.server];
            for ((side, now), before) in sides.into_iter().zip(now).zip(before) {
                let busy_ns = nanoseconds(now.busy.saturating_sub(before.busy));
                let own_ns = if self.is_shared { both_ns } else { side.cpu_ns() };
                side.others_ns = busy_ns.saturating_sub(own_ns);
                side.stolen_ns = nanoseconds(now.stolen.saturating_sub(before.stolen));
            }
        }
        usage
    }
}

impl Processors {
    /// Of the lines `cpuN user nice system idle iowait irq softirq steal …` of `/proc/stat` those of `cpus`.
    fn in_stat(stat: &str, cpus: &CpuList) -> Self {
        let mut sum = Self::default();
        for line in stat.lines() {
            let mut fields = line.split_ascii_whitespace();
            let cpu = fields.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
            if !cpu.is_some_and(|cpu: usize| cpus.as_slice().contains(&cpu)) {
                continue;
            }
            let ticks: Vec<u64> = fields.map_while(|field| field.parse().ok()).take(8).collect();
            if let [user, nice, system, _idle, _iowait, irq, softirq, steal] = ticks[..] {
                sum.busy += Duration::from_millis(TICK_MS * (user + nice + system + irq + softirq));
                sum.stolen += Duration::from_millis(TICK_MS * steal);
            }
        }
        sum
    }
}

impl ProcessSample {
    fn take(pid: u32) -> io::Result<Self> {
        let mut all = Self::of_process(pid)?;
        let mut left = children(pid);
        while let Some(child) = left.pop() {
            // One may have ended since the listing.
            let Ok(sample) = Self::of_process(child) else { continue };
            all.add(sample);
            left.extend(children(child));
        }
        Ok(all)
    }

    fn add(&mut self, other: Self) {
        self.cpu += other.cpu;
        self.ticks.user += other.ticks.user;
        self.ticks.system += other.ticks.system;
        self.switches.extend(other.switches);
        self.waited.extend(other.waited);
    }

    fn of_process(pid: u32) -> io::Result<Self> {
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
            others_ns: 0,
            stolen_ns: 0,
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

/// The processor time that a process and those that it started have used since they began: of those that are there,
/// with their threads that have ended.
pub fn processor_time(pid: u32) -> io::Result<Duration> {
    ProcessSample::take(pid).map(|sample| sample.cpu)
}

/// Processes that this one has started; none where the kernel does not tell.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_task = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let numbers = |text: String| -> Vec<u32> {
        text.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
    };
    tasks.map(of_task).flat_map(numbers).collect()
}

/// What the process and those that it started hold in memory, bytes.
pub(crate) fn resident_bytes(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let own = resident_in(&status).ok_or_else(|| io::Error::other("/proc/PID/status has no VmRSS"))?;
    // One may have ended since the listing.
    Ok(own + children(pid).into_iter().filter_map(|child| resident_bytes(child).ok()).sum::<u64>())
}

/// The line `VmRSS:   5744 kB`.
fn resident_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10)
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
    fn resident_memory_is_read_in_kib() {
        assert_eq!(resident_in("Name:\tpeer\nVmRSS:\t    5744 kB\nRssAnon:\t 9 kB\n"), Some(5744 << 10));
        assert_eq!(resident_in("Name:\tpeer\n"), None);
        assert!(resident_bytes(std::process::id()).unwrap() > 1 << 20);
    }

    #[test]
    fn switches_are_read_by_their_names() {
        let status = "Name:\tpeer\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(Switches::in_status(status), Switches { voluntary: 150, involuntary: 545 });
        assert_eq!(Switches::in_status("Name:\tpeer\n"), Switches::default());
    }

    #[test]
    fn processors_are_those_of_a_side() {
        let stat =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 100 5 6 7 8 0 0\ncpu1 10 0 0 50 0 0 0 1 0 0\nintr 5 5\n";
        let check = |cpus: &str, busy, stolen| {
            let [busy, stolen] = [busy, stolen].map(|ticks| Duration::from_millis(TICK_MS * ticks));
            let expected = Processors { busy, stolen };
            assert_eq!(Processors::in_stat(stat, &cpus.parse().unwrap()), expected, "{cpus}");
        };
        check("0", 19, 8);
        check("1", 10, 1);
        check("0-1", 29, 9);
        check("7", 0, 0);
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

    impl Shell {
        /// As client and server, both kept on these processors.
        fn beside(&self, server: &Self, cpus: Option<&CpuList>) -> Sides {
            let side = |shell: &Self| Side { process: shell.0.id(), cpus: cpus.cloned() };
            Sides { client: side(self), server: side(server) }
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
        let sides = busy.beside(&idle, None);
        let before = sides.sample().unwrap();
        let mut usage = before.since(&before);
        assert_eq!(usage.client, ProcessUsage::default());
        // However slow the machine, the busy one gets there.
        while usage.client.cpu_ns() < 50_000_000 {
            std::thread::sleep(Duration::from_millis(5));
            usage = sides.sample().unwrap().since(&before);
        }
        assert!(usage.server.cpu_ns() < usage.client.cpu_ns(), "{usage:?}");
        assert!(usage.window_ns >= 25_000_000, "{usage:?}");
    }

    #[test]
    fn what_a_process_has_started_counts_as_its_own() {
        let parent = Shell::run("sh -c 'while :; do :; done' & echo; trap 'kill $!' TERM; wait");
        let before = ProcessSample::take(parent.0.id()).unwrap();
        let began = Instant::now();
        // However slow the machine, the child gets there; its parent waits.
        while ProcessSample::take(parent.0.id()).unwrap().since(&before).cpu_ns() < 30_000_000 {
            assert!(began.elapsed() < Duration::from_secs(60), "the child's time is not counted");
            std::thread::sleep(Duration::from_millis(5));
        }
        for child in children(parent.0.id()) {
            nix::sys::signal::kill(Pid::from_raw(child.cast_signed()), nix::sys::signal::SIGKILL).unwrap();
        }
    }

    #[test]
    fn a_neighbour_that_takes_a_processor_is_seen() {
        let cpu = CpuList::available().unwrap().as_slice()[0];
        let busy = format!("echo; exec taskset -c {cpu} sh -c 'while :; do :; done'");
        let (client, _neighbour) = (Shell::run(&busy), Shell::run(&busy));
        let server = Shell::run("echo; exec sleep 1000");
        let sides = client.beside(&server, Some(&cpu.to_string().parse().unwrap()));
        let before = sides.sample().unwrap();
        let mut usage = before.since(&before);
        assert_eq!(usage.disturbance(), None);
        // Both get there, at the same pace.
        while usage.client.cpu_ns() < 200_000_000 {
            std::thread::sleep(Duration::from_millis(5));
            usage = sides.sample().unwrap().since(&before);
        }
        let disturbance = usage.disturbance().unwrap_or_default();
        assert!(disturbance.contains("the client waited for a CPU"), "{disturbance}: {usage:?}");
    }

    #[test]
    fn threads_that_wait_for_each_other_are_not_disturbed() {
        let alone = ProcessUsage { user_ns: 290_000_000, waited_ns: 900_000_000, ..ProcessUsage::default() };
        let check = |client: ProcessUsage, expected: Option<&str>| {
            let server = ProcessUsage::default();
            let usage = Usage { window_ns: 300_000_000, client, server, server_memory: None };
            let said = usage.disturbance();
            assert_eq!(
                said.as_deref().map(|said| said.contains(expected.unwrap_or("-"))),
                expected.map(|_| true)
            );
        };
        check(alone, None);
        check(ProcessUsage { others_ns: 10_000_000, ..alone }, None);
        check(
            ProcessUsage { others_ns: 60_000_000, ..alone },
            Some("for 20 % of the window: other programs"),
        );
        check(ProcessUsage { stolen_ns: 60_000_000, ..alone }, Some("for 20 % of the window: CPU steal"));
        // Others ran where the process did not want to.
        check(ProcessUsage { others_ns: 200_000_000, waited_ns: 0, ..alone }, None);
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let side = |process| Side { process, cpus: None };
        assert!(Sides { client: side(child.id()), server: side(std::process::id()) }.sample().is_err());
    }
}
