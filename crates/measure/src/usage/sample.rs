//! Reading the counters of processes and of their CPUs.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;

use super::throttling::throttled;
use super::used::{ProcessUsage, Usage};
use crate::cpus::CpuList;
use crate::kernel::{ServerLocation, TICK_MS};

/// The two processes of a measurement.
#[derive(Clone, Debug)]
pub struct MeasuredProcesses {
    /// The driver process.
    pub client: SideProcesses,
    /// The server's processes. `None` if it runs elsewhere.
    pub server: Option<SideProcesses>,
}

/// One side of a measurement.
#[derive(Clone, Debug)]
pub struct SideProcesses {
    /// PIDs.
    pub processes: Vec<u32>,
    /// CPUs that the processes are pinned to. `None`: the CPUs that the first process may use.
    pub cpus: Option<CpuList>,
}

/// Counters of the client and the server process at one moment.
#[derive(Clone, Debug)]
pub struct Sample {
    taken: Instant,
    client: ProcessSample,
    server: ProcessSample,
}

/// Time of a set of CPUs since boot, over all programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CpuCounters {
    busy: Duration,
    /// Time that the host ran something else while these CPUs were runnable.
    stolen: Duration,
}

/// Counters of one process and its living descendants since they started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ProcessSample {
    /// CPU time of all threads, including those that have exited.
    cpu: Duration,
    ticks: Ticks,
    /// Context switches of each living thread, by TID.
    switches: Vec<(u32, ContextSwitches)>,
    /// Time that each living thread was runnable but not running, by TID.
    waited: Vec<(u32, Duration)>,
    cpus: Vec<usize>,
    /// Counters of these CPUs.
    processors: CpuCounters,
    /// Time that a quota throttled the cgroup.
    throttled: Duration,
}

/// Kernel ticks that found the process in user space and in the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ticks {
    user: u64,
    system: u64,
}

/// Number of context switches by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ContextSwitches {
    voluntary: u64,
    involuntary: u64,
}

impl SideProcesses {
    /// Creates a side with one process.
    pub fn of(process: u32, cpus: Option<CpuList>) -> Self {
        Self { processes: vec![process], cpus }
    }

    /// Reads the counters of the processes and of their CPUs.
    fn sample(&self) -> io::Result<ProcessSample> {
        let mut all = ProcessSample::default();
        for &process in &self.processes {
            all.add(ProcessSample::take(process)?);
        }
        let first = self.processes.first().copied().unwrap_or_default();
        let allowed = || allowed_cpus(&fs::read_to_string(format!("/proc/{first}/status")).ok()?);
        if let Some(cpus) = self.cpus.clone().or_else(allowed) {
            all.processors = CpuCounters::in_stat(&fs::read_to_string("/proc/stat")?, &cpus);
            all.cpus = cpus.as_slice().to_vec();
        }
        all.throttled = throttled(first);
        Ok(all)
    }
}

impl MeasuredProcesses {
    /// Uses the processes on this machine that the client is connected to as the server. Returns the location of
    /// servers.
    ///
    /// Reads the open files of all processes, which takes some ms.
    pub fn find_server(&mut self, targets: &[String]) -> ServerLocation {
        let client = self.client.processes.first().copied().unwrap_or_default();
        let servers = ServerLocation::of(client, targets).unwrap_or(ServerLocation::Elsewhere);
        if let ServerLocation::Here(processes) = &servers
            && !processes.is_empty()
        {
            self.server = Some(SideProcesses { processes: processes.clone(), cpus: None });
        }
        servers
    }

    /// Reads the counters of both sides and of their CPUs.
    ///
    /// # Errors
    ///
    /// Returns an error if a process is gone or `/proc` is not readable.
    pub fn sample(&self) -> io::Result<Sample> {
        let taken = Instant::now();
        let server = self.server.as_ref().map(SideProcesses::sample).transpose()?.unwrap_or_default();
        Ok(Sample { taken, client: self.client.sample()?, server })
    }
}

impl Sample {
    /// Returns the usage since `earlier`, without server memory.
    pub fn since(&self, earlier: &Self) -> Usage {
        let mut client = self.client.since(&earlier.client);
        let mut server = self.server.since(&earlier.server);
        // If both sides share CPUs, the other side does not count as a disturbance.
        if self.client.cpus.iter().any(|cpu| self.server.cpus.contains(cpu)) {
            let (clients_ns, servers_ns) = (client.cpu_ns(), server.cpu_ns());
            client.others_ns = client.others_ns.saturating_sub(servers_ns);
            server.others_ns = server.others_ns.saturating_sub(clients_ns);
        }
        let window_ns = nanoseconds(self.taken - earlier.taken);
        Usage { window_ns, client, server, server_memory: None }
    }
}

impl CpuCounters {
    /// Sums the lines `cpuN user nice system idle iowait irq softirq steal …` of `/proc/stat` over `cpus`.
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
            // The child may have exited since the listing.
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
        let ticks =
            Ticks::in_stat(&stat).ok_or_else(|| io::Error::other("no CPU times in /proc/PID/stat"))?;
        let (mut switches, mut waited) = (Vec::new(), Vec::new());
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let entry = entry?;
            let thread = entry.file_name().to_str().and_then(|name| name.parse().ok());
            // The thread may have exited since the listing.
            let status = fs::read_to_string(entry.path().join("status"));
            let schedule = fs::read_to_string(entry.path().join("schedstat")).unwrap_or_default();
            if let (Some(thread), Ok(status)) = (thread, status) {
                switches.push((thread, ContextSwitches::in_status(&status)));
                waited.push((thread, waited_in(&schedule)));
            }
        }
        Ok(Self { cpu, ticks, switches, waited, ..Self::default() })
    }

    fn since(&self, earlier: &Self) -> ProcessUsage {
        let cpu_ns = nanoseconds(self.cpu.saturating_sub(earlier.cpu));
        let system_ns = (cpu_ns as f64 * self.ticks.system_share_since(earlier.ticks)).round() as u64;
        let mut switches = ContextSwitches::default();
        for (thread, now) in &self.switches {
            let before = earlier.switches.iter().find(|(earlier, _)| earlier == thread);
            let before = before.map_or(ContextSwitches::default(), |(_, before)| *before);
            switches.voluntary += now.voluntary.saturating_sub(before.voluntary);
            switches.involuntary += now.involuntary.saturating_sub(before.involuntary);
        }
        let taken = |of: fn(&CpuCounters) -> Duration| {
            nanoseconds(of(&self.processors).saturating_sub(of(&earlier.processors)))
        };
        ProcessUsage {
            user_ns: cpu_ns - system_ns,
            system_ns,
            voluntary_switches: switches.voluntary,
            involuntary_switches: switches.involuntary,
            waited_ns: nanoseconds(self.waited_since(earlier)),
            others_ns: taken(|processors| processors.busy).saturating_sub(cpu_ns),
            stolen_ns: taken(|processors| processors.stolen),
            throttled_ns: nanoseconds(self.throttled.saturating_sub(earlier.throttled)),
            processors: u32::try_from(self.cpus.len()).unwrap_or(u32::MAX),
        }
    }
}

impl ProcessSample {
    /// Returns the waiting time since `earlier`, summed over the living threads.
    fn waited_since(&self, earlier: &Self) -> Duration {
        let since = |(thread, now): &(u32, Duration)| {
            let before = earlier.waited.iter().find(|(earlier, _)| earlier == thread);
            now.saturating_sub(before.map_or(Duration::ZERO, |(_, before)| *before))
        };
        self.waited.iter().map(since).sum()
    }
}

/// Returns the CPU time that a process and its living descendants have used since they started.
///
/// Includes threads that have exited, but not descendants that have exited.
///
/// # Errors
///
/// Returns an error if the process is gone or `/proc` is not readable.
pub fn processor_time(pid: u32) -> io::Result<Duration> {
    ProcessSample::take(pid).map(|sample| sample.cpu)
}

/// Returns how long this thread has waited for a CPU while it was ready to run. 0 if the kernel does not count it.
pub fn waited_by_this_thread() -> Duration {
    waited_in(&fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default())
}

/// Returns the PIDs of the living children. Empty if the kernel does not list them (`CONFIG_PROC_CHILDREN`).
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_task = |task: fs::DirEntry| fs::read_to_string(task.path().join("children")).unwrap_or_default();
    let numbers = |text: String| -> Vec<u32> {
        text.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
    };
    tasks.map(of_task).flat_map(numbers).collect()
}

/// Returns the resident memory of the process and its descendants, in bytes. Counts shared pages once per process.
///
/// # Errors
///
/// Returns an error if the process is gone or is a zombie.
pub fn resident_bytes(pid: u32) -> io::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let own = resident_in(&status).ok_or_else(|| io::Error::other("no VmRSS in /proc/PID/status"))?;
    // A child may have exited since the listing.
    Ok(own + children(pid).into_iter().filter_map(|child| resident_bytes(child).ok()).sum::<u64>())
}

/// Reads the line `VmRSS:   5744 kB`, as bytes.
fn resident_in(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Reads the second number of `/proc/PID/task/TID/schedstat`: ns on a run queue. 0 if the kernel does not count it.
fn waited_in(schedstat: &str) -> Duration {
    let waited = schedstat.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok());
    Duration::from_nanos(waited.unwrap_or(0))
}

impl Ticks {
    /// Reads fields 14 and 15 of `/proc/PID/stat`. Counts them from the last parenthesis, because the name in field 2
    /// may contain any character.
    fn in_stat(stat: &str) -> Option<Self> {
        let (_, behind) = stat.rsplit_once(')')?;
        let mut fields = behind.split_ascii_whitespace().skip(11).map_while(|field| field.parse().ok());
        Some(Self { user: fields.next()?, system: fields.next()? })
    }

    /// Returns the kernel's share of the time since `earlier`, from 0 to 1. Uses the total time if no tick has passed.
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

impl ContextSwitches {
    /// Reads the lines `voluntary_ctxt_switches` and `nonvoluntary_ctxt_switches` of `/proc/PID/task/TID/status`.
    fn in_status(status: &str) -> Self {
        let value = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
        };
        Self { voluntary: value("voluntary_ctxt_switches"), involuntary: value("nonvoluntary_ctxt_switches") }
    }
}

/// Returns the CPU time of a process, including threads that have exited. Exact, unlike `/proc/PID/stat` with its 10 ms
/// ticks.
fn cpu_time(pid: u32) -> io::Result<Duration> {
    let pid = i32::try_from(pid).map_err(io::Error::other)?;
    let clock: ClockId = clock_getcpuclockid(Pid::from_raw(pid))?;
    Ok(clock.now()?.into())
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Reads the line `Cpus_allowed_list: 0-3,8` of `/proc/PID/status`.
fn allowed_cpus(status: &str) -> Option<CpuList> {
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::validity::Cause;

    #[test]
    fn ticks_are_parsed_after_any_process_name() {
        let check = |stat: &str, expected: Option<(u64, u64)>| {
            assert_eq!(Ticks::in_stat(stat).map(|ticks| (ticks.user, ticks.system)), expected, "{stat}");
        };
        check("7 (peer) S 1 7 7 0 -1 4194560 103 0 0 0 31 14 0 0 20 0 1 0 9 8 7", Some((31, 14)));
        check("7 (a) R (b)) S 1 7 7 0 -1 4194560 103 0 0 0 31 14 0 0 20 0 1 0 9", Some((31, 14)));
        check("7 (peer) S 1 7 7 0 -1 4194560 103 0 0 0 31", None);
        check("", None);
    }

    #[test]
    fn resident_memory_is_parsed_from_kib() {
        assert_eq!(resident_in("Name:\tpeer\nVmRSS:\t    5744 kB\nRssAnon:\t 9 kB\n"), Some(5744 << 10));
        assert_eq!(resident_in("Name:\tpeer\n"), None);
        assert!(resident_bytes(std::process::id()).unwrap() > 1 << 20);
    }

    #[test]
    fn context_switches_are_parsed_by_name() {
        let status = "Name:\tpeer\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        assert_eq!(ContextSwitches::in_status(status), ContextSwitches { voluntary: 150, involuntary: 545 });
        assert_eq!(ContextSwitches::in_status("Name:\tpeer\n"), ContextSwitches::default());
    }

    #[test]
    fn cpu_times_are_summed_over_the_listed_cpus() {
        let stat =
            "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 100 5 6 7 8 0 0\ncpu1 10 0 0 50 0 0 0 1 0 0\nintr 5 5\n";
        let check = |cpus: &str, busy, stolen| {
            let [busy, stolen] = [busy, stolen].map(|ticks| Duration::from_millis(TICK_MS * ticks));
            let expected = CpuCounters { busy, stolen };
            assert_eq!(CpuCounters::in_stat(stat, &cpus.parse().unwrap()), expected, "{cpus}");
        };
        check("0", 19, 8);
        check("1", 10, 1);
        check("0-1", 29, 9);
        check("7", 0, 0);
    }

    #[test]
    fn waiting_time_is_the_second_number_of_schedstat() {
        assert_eq!(waited_in("2871446126 1503 9142\n"), Duration::from_nanos(1503));
        assert_eq!(waited_in(""), Duration::ZERO);
    }

    #[test]
    fn cpu_time_is_split_by_ticks_and_threads_are_matched_by_tid() {
        let switches = |voluntary, involuntary| ContextSwitches { voluntary, involuntary };
        let before = ProcessSample {
            cpu: Duration::from_millis(100),
            ticks: Ticks { user: 5, system: 5 },
            switches: vec![(1, switches(10, 1)), (2, switches(1000, 0))],
            waited: vec![(1, Duration::from_millis(10)), (2, Duration::from_millis(500))],
            ..ProcessSample::default()
        };
        // Thread 2 has exited, thread 3 has started.
        let after = ProcessSample {
            cpu: Duration::from_millis(400),
            ticks: Ticks { user: 15, system: 25 },
            switches: vec![(1, switches(15, 3)), (3, switches(7, 0))],
            waited: vec![(1, Duration::from_millis(30)), (3, Duration::from_millis(4))],
            ..ProcessSample::default()
        };
        let usage = after.since(&before);
        assert_eq!((usage.user_ns, usage.system_ns, usage.cpu_ns()), (100_000_000, 200_000_000, 300_000_000));
        assert_eq!((usage.voluntary_switches, usage.involuntary_switches), (12, 2));
        assert_eq!(usage.waited_ns, 24_000_000);
        // Without a new tick, the split so far applies.
        let soon = ProcessSample { cpu: Duration::from_millis(104), ..before.clone() };
        assert_eq!((soon.since(&before).user_ns, soon.since(&before).system_ns), (2_000_000, 2_000_000));
    }

    /// A shell that runs a script until it is killed.
    struct Shell(Child);

    impl Shell {
        /// Starts the script and returns after its first line of output.
        fn run(script: &str) -> Self {
            let mut child = Command::new("sh").args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
            let mut line = String::new();
            BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            Self(child)
        }
    }

    impl Shell {
        /// Returns this shell as the client of `server`, both pinned to these CPUs.
        fn sides_with(&self, server: &Self, cpus: Option<&CpuList>) -> MeasuredProcesses {
            let side = |shell: &Self| SideProcesses::of(shell.0.id(), cpus.cloned());
            MeasuredProcesses { client: side(self), server: Some(side(server)) }
        }
    }

    impl Drop for Shell {
        fn drop(&mut self) {
            self.0.kill().unwrap();
            self.0.wait().unwrap();
        }
    }

    #[test]
    fn busy_process_uses_more_cpu_time_than_idle_one() {
        let busy = Shell::run("echo; while :; do :; done");
        let idle = Shell::run("echo; exec sleep 1000");
        let sides = busy.sides_with(&idle, None);
        let before = sides.sample().unwrap();
        let mut usage = before.since(&before);
        assert_eq!((usage.client.cpu_ns(), usage.client.waited_ns), (0, 0));
        // The busy process reaches this time on any machine.
        while usage.client.cpu_ns() < 50_000_000 {
            std::thread::sleep(Duration::from_millis(5));
            usage = sides.sample().unwrap().since(&before);
        }
        assert!(usage.server.cpu_ns() < usage.client.cpu_ns(), "{usage:?}");
        assert!(usage.window_ns >= 25_000_000, "{usage:?}");
    }

    #[test]
    fn cpu_time_of_child_is_included() {
        let parent = Shell::run("sh -c 'while :; do :; done' & echo; trap 'kill $!' TERM; wait");
        let before = ProcessSample::take(parent.0.id()).unwrap();
        let began = Instant::now();
        // The child reaches this time on any machine. Its parent only waits.
        while ProcessSample::take(parent.0.id()).unwrap().since(&before).cpu_ns() < 30_000_000 {
            assert!(began.elapsed() < Duration::from_secs(60), "the child's CPU time is not included");
            std::thread::sleep(Duration::from_millis(5));
        }
        for child in children(parent.0.id()) {
            nix::sys::signal::kill(Pid::from_raw(child.cast_signed()), nix::sys::signal::SIGKILL).unwrap();
        }
    }

    #[test]
    fn other_program_on_same_cpu_is_reported_as_disturbance() {
        let cpu = CpuList::available().unwrap().as_slice()[0];
        let busy = format!("echo; exec taskset -c {cpu} sh -c 'while :; do :; done'");
        let (client, _neighbour) = (Shell::run(&busy), Shell::run(&busy));
        let server = Shell::run("echo; exec sleep 1000");
        let sides = client.sides_with(&server, Some(&cpu.to_string().parse().unwrap()));
        let before = sides.sample().unwrap();
        let mut usage = before.since(&before);
        assert_eq!(usage.disturbance(), None);
        // Both processes reach this time at the same pace.
        while usage.client.cpu_ns() < 200_000_000 {
            std::thread::sleep(Duration::from_millis(5));
            usage = sides.sample().unwrap().since(&before);
        }
        let disturbance = usage.disturbance().unwrap_or_else(|| panic!("no disturbance: {usage:?}"));
        assert_eq!(disturbance.cause, Cause::OtherPrograms);
        assert!(disturbance.text.contains("the client waited for a CPU"), "{disturbance:?}: {usage:?}");
    }

    #[test]
    fn allowed_cpus_are_those_of_an_unpinned_process() {
        let allowed = allowed_cpus("Name:\tpeer\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1,4\n").unwrap();
        assert_eq!(allowed.as_slice(), [0, 1, 4]);
        let own = MeasuredProcesses { client: SideProcesses::of(std::process::id(), None), server: None }
            .sample()
            .unwrap();
        assert_eq!(own.client.cpus, CpuList::available().unwrap().as_slice());
    }

    #[test]
    fn sampling_a_gone_process_is_an_error() {
        let mut child = Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let side = |process| SideProcesses::of(process, None);
        assert!(
            MeasuredProcesses { client: side(child.id()), server: Some(side(std::process::id())) }
                .sample()
                .is_err()
        );
    }
}
