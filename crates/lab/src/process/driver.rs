//! One run of a stack's driver against a server.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use thalweg_measure::cpus::{CpuAssignment, CpuList};
use thalweg_measure::distribution::Distribution;
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::kernel::{ServerLocation, connections_at};
use thalweg_measure::usage::{MeasuredProcesses, Sample, ServerMemory, SideProcesses, Usage, resident_bytes};

use super::hop::Hop;
use super::program::Program;
use crate::echo::{ClientWork, EchoWork, Shape};
use crate::load::MeasuredLoad;
use crate::load::{Point, WireTraffic};
use crate::record::{BareWire, LOAD_SCHEMA, LaneRule, LoadResult, MethodCall, Note};
use crate::study::ExecuteError;
use thalweg_load::peer::{Announcement, ConductError, Watch, conduct};

/// Deadline of a call, and of a stream's next message or response. It limits the wait for operations in flight at a
/// window's end.
const CALL_PATIENCE: Duration = Duration::from_secs(5);
/// Time by which a driver may exceed its plan before it is killed.
const DRIVER_PATIENCE: Duration = Duration::from_secs(20);
/// Time limit per call of a run with a fixed number of calls, several times what the slowest server takes for 5,000
/// strings.
const PATIENCE_PER_CALL: Duration = Duration::from_millis(50);
/// Most connections that are counted in the kernel's tables while measuring. Counting a thousand takes 10 ms.
const COUNTED_MAX: u32 = 1024;
/// Interval for checking interrupts.
pub(super) const INTERRUPT_INTERVAL: Duration = Duration::from_millis(50);
/// Prefix of notes on the number of connections.
const CONNECTIONS: &str = "connections:";

/// A driver ready to start.
#[derive(Clone, Debug)]
pub(super) struct Driver {
    pub(super) program: Program,
    pub(super) variant: Option<String>,
    /// The driven point; calls only, no bare socket.
    pub(super) point: Point,
    pub(super) lanes: LaneRule,
    /// Number of threads, if set.
    pub(super) threads: Option<u32>,
    /// Address of the server.
    pub(super) target: String,
    /// The network in between, if there is one.
    pub(super) hop: Option<Hop>,
    /// The server's process; `None` if the lab did not start it.
    pub(super) server_pid: Option<u32>,
    /// The method to call, if not the lab's own work.
    pub(super) method: Option<MethodCall>,
    /// Echo calls that replace the point's calls in the JSON study.
    pub(super) echo: Option<Echo>,
    /// Wire protocol of the bare client, if that drives.
    pub(super) bare: Option<BareWire>,
    /// Certificate authority to trust for TLS connections.
    pub(super) authority: Option<PathBuf>,
    pub(super) cpus: Option<CpuList>,
    /// Processors that the server is pinned to.
    pub(super) server_cpus: Option<CpuList>,
    pub(super) interrupt: Interrupt,
}

/// Files of user-supplied messages.
#[derive(Clone, Debug)]
pub struct OwnFiles {
    /// The file that has their type.
    pub proto: PathBuf,
    /// The type's full name.
    pub type_name: String,
    /// The messages.
    pub data: PathBuf,
}

impl OwnFiles {
    /// Returns the arguments of `serve` and `load` that name the type.
    pub(super) fn of_type(&self) -> [&OsStr; 4] {
        ["--proto".as_ref(), self.proto.as_ref(), "--type".as_ref(), self.type_name.as_ref()]
    }
}

/// Echo work and its number of calls.
#[derive(Clone, Debug)]
pub(super) struct Echo {
    pub(super) work: EchoWork,
    /// User-supplied messages to echo.
    pub(super) own: Option<OwnFiles>,
    /// Number of calls that ends the run, instead of the point's time.
    pub(super) calls: Option<u64>,
}

/// Observes a window's processes when its driver reports progress.
struct ProcessObserver {
    sides: MeasuredProcesses,
    /// The server's process; figures the kernel does not report stay unknown.
    server: Option<u32>,
    listens_at: String,
    hop: Option<Hop>,
    /// Whether connections are counted in the kernel's tables.
    counts: bool,
    /// Whether other programs may be the server.
    is_hidden: bool,
    start: Option<Sample>,
    memory: Option<ServerMemory>,
    usage: Option<Usage>,
    /// Note on the client's wait for a CPU, for a server the lab did not start.
    waiting: Option<Note>,
    connections: Option<u32>,
    wire: Option<WireTraffic>,
}

impl Driver {
    /// Creates a driver with a stack's default client, for a server whose process is unknown.
    pub(super) fn new(
        program: &Program,
        target: &str,
        point: Point,
        cpus: &CpuAssignment,
        interrupt: &Interrupt,
    ) -> Self {
        Self {
            program: program.clone(),
            variant: None,
            point,
            lanes: LaneRule::Fixed,
            threads: cpus.client_threads,
            target: target.to_owned(),
            hop: None,
            server_pid: None,
            method: None,
            echo: None,
            bare: None,
            authority: None,
            cpus: cpus.client_cpus.clone(),
            server_cpus: cpus.server_cpus.clone(),
            interrupt: interrupt.clone(),
        }
    }

    /// Runs the driver to its end.
    pub(super) fn run(&self) -> Result<MeasuredLoad, ExecuteError> {
        let (load, observed) = self.run_as(self.command())?;
        let mut load = self.completed(load, observed.connections);
        load.notes.extend(observed.waiting);
        Ok(MeasuredLoad { load, usage: observed.usage })
    }

    /// Runs the driver to its end and returns what its hop saw.
    pub(super) fn watch_wire(&self) -> Result<WireTraffic, ExecuteError> {
        let (load, observed) = self.run_as(self.command())?;
        let nothing = |what: &str| ExecuteError::Window(what.to_owned());
        if load.messages == 0 || load.error_count() > 0 {
            return Err(nothing("calls failed while the wire was observed"));
        }
        observed.wire.ok_or_else(|| nothing("the driver did not report when measuring started and ended"))
    }

    /// Runs the driver as an argument of another program.
    pub(super) fn run_under(&self, wrapper: &[&str]) -> Result<LoadResult, ExecuteError> {
        let command = self.command();
        let mut wrapped = Command::new(wrapper[0]);
        wrapped.args(&wrapper[1..]).arg(command.get_program()).args(command.get_args());
        self.run_as(wrapped).map(|(load, _)| load)
    }

    fn run_as(&self, mut command: Command) -> Result<(LoadResult, ProcessObserver), ExecuteError> {
        let calls = self.echo.as_ref().and_then(|echo| echo.calls);
        let patience = time_limit(&self.point, calls);
        let conducted = conduct(&mut command, self.cpus.as_ref(), patience, &self.interrupt, |client| {
            self.observer(client)
        });
        let client = conducted.map_err(|error| match error {
            ConductError::Interrupted => ExecuteError::Interrupted,
            error => ExecuteError::Window(error.to_string()),
        })?;
        // A run whose calls all failed exits with 1 but still prints its results, so the JSON counts, not the exit
        // code.
        match parse_load(&client.text) {
            Ok(load) => Ok((load, client.watch)),
            Err(unreadable) => Err(ExecuteError::Window(match client.process.stderr_tail() {
                complaint if complaint.is_empty() => unreadable,
                complaint => complaint,
            })),
        }
    }

    fn observer(&self, client: u32) -> ProcessObserver {
        let server = self.server_pid.map(|server| SideProcesses::of(server, self.server_cpus.clone()));
        ProcessObserver {
            server: server.as_ref().and_then(|server| server.processes.first().copied()),
            sides: MeasuredProcesses { client: SideProcesses::of(client, self.cpus.clone()), server },
            listens_at: self.target.clone(),
            hop: self.hop.clone(),
            // The bare client counts its own connections. With very many, counting would take longer than the window.
            counts: self.bare.is_none() && self.point.connections <= COUNTED_MAX,
            is_hidden: false,
            start: None,
            memory: None,
            usage: None,
            waiting: None,
            connections: None,
            wire: None,
        }
    }

    fn command(&self) -> Command {
        let Point { size_bytes, in_flight, connections, warmup, duration, .. } = &self.point;
        let target = self.hop.as_ref().map_or_else(|| self.target.clone(), Hop::target);
        let mut command = self.program.command("load");
        command.arg(&target);
        match &self.echo {
            None => command.args(["--call", self.point.work.name(), "--size", &size_bytes.0.to_string()]),
            Some(Echo { work, own, .. }) => {
                if let Some(own) = own.as_ref().filter(|_| work.shape == Shape::Own) {
                    command.arg("--echo-proto").arg(&own.proto).arg("--echo-type").arg(&own.type_name);
                    command.arg("--echo-messages").arg(&own.data);
                }
                command.args(echo_arguments(*work))
            }
        };
        command
            .args(["-c", &in_flight.to_string(), "--connections", &connections.to_string()])
            .args(["--warmup", &micros(*warmup)]);
        match self.echo.as_ref().and_then(|echo| echo.calls) {
            None => command.args(["-z", &micros(*duration)]),
            Some(calls) => command.args(["-n", &calls.to_string()]),
        };
        command.args(["--timeout", &micros(CALL_PATIENCE), "-O", "json", "--announce"]);
        if let Some(variant) = &self.variant {
            command.args(["--variant", variant]);
        }
        // Peers get only the options they need.
        if self.lanes != LaneRule::Fixed {
            command.args(["--lanes", self.lanes.name()]);
        }
        if let Some(MethodCall { path, request }) = &self.method {
            command.args(["--method", path, "--hex", &hex(request)]);
        }
        if let Some(wire) = self.bare {
            let active = self.point.active.unwrap_or(self.point.connections);
            command.args(["--bare", wire.name(), "--active", &active.to_string()]);
        }
        if let Some(authority) = &self.authority {
            command.arg("--cacert").arg(authority);
        }
        if let Some(threads) = self.threads {
            command.args(["--threads", &threads.to_string()]);
        }
        command
    }

    /// Completes the result with facts observed from outside: the driver's processors and its number of connections.
    fn completed(&self, mut load: LoadResult, connections: Option<u32>) -> LoadResult {
        load.settings.cpus.clone_from(&self.cpus);
        if let Some(connections) = connections {
            load.connections.established = Some(connections);
            let is_noted = load.notes.iter().any(|note| note.text.starts_with(CONNECTIONS));
            let is_asked_for = self.lanes == LaneRule::Fixed;
            if is_asked_for && connections != self.point.connections && !is_noted {
                let text =
                    format!("{CONNECTIONS} {} requested, {connections} established", self.point.connections);
                load.notes.push(Note { text, invalidates: false });
            }
        }
        load
    }
}

/// Returns the time limit of a run. With a fixed number of calls it allows for slow servers.
fn time_limit(point: &Point, calls: Option<u64>) -> Duration {
    let calls = u32::try_from(calls.unwrap_or(0)).unwrap_or(u32::MAX);
    point.warmup + point.duration + PATIENCE_PER_CALL.saturating_mul(calls) + DRIVER_PATIENCE
}

/// Parses the driver's JSON. The schema is checked first, since another schema may have other fields.
fn parse_load(text: &str) -> Result<LoadResult, String> {
    #[derive(Deserialize)]
    struct SchemaHeader {
        schema: String,
    }
    let unreadable = |error| format!("failed to read the driver's result: {error}");
    let header: SchemaHeader = serde_json::from_str(text).map_err(unreadable)?;
    if header.schema != LOAD_SCHEMA {
        return Err(format!(
            "the driver's result has the schema {}, expected {LOAD_SCHEMA}; rebuild it",
            header.schema
        ));
    }
    let mut load: LoadResult = serde_json::from_str(text).map_err(unreadable)?;
    if let Some(latency) = &mut load.latency_ns {
        // Drivers of other stacks report only some percentiles.
        let all = || Distribution::restored(&load.histogram, latency).filter(|all| !all.is_empty());
        latency.p95 = latency.p95.or_else(|| Some(all()?.value_at(0.95)));
    }
    Ok(load)
}

impl ProcessObserver {
    /// Returns the server's resident memory.
    fn server_memory(&self) -> Option<u64> {
        resident_bytes(self.server?).ok()
    }

    fn measuring(&mut self) {
        let resident = self.server_memory();
        if let Some((memory, resident)) = self.memory.as_mut().zip(resident) {
            memory.measuring = resident;
        }
        if self.server.is_none() {
            self.is_hidden =
                self.sides.find_server(std::slice::from_ref(&self.listens_at)) == ServerLocation::Hidden;
        }
        self.start = self.sides.sample().ok();
        if let Some(hop) = &self.hop {
            hop.reset();
        }
        if self.counts {
            self.connections = self.server.and_then(|server| connections_at(server, &self.listens_at).ok());
        }
    }

    fn measured(&mut self) {
        let end = self.sides.sample().ok();
        self.wire = self.hop.as_ref().map(Hop::traffic);
        let Some((begin, end)) = self.start.as_ref().zip(end) else { return };
        let usage = end.since(begin);
        if self.server.is_some() {
            self.usage = Some(Usage { server_memory: self.memory, ..usage });
        } else {
            let reason = usage.client.kept_waiting("client", usage.window_ns);
            self.waiting = reason.map(|reason| Note { text: reason.text, invalidates: !self.is_hidden });
        }
    }
}

impl Watch for ProcessObserver {
    fn announced(&mut self, announcement: Announcement) {
        match announcement {
            Announcement::First => {
                self.memory =
                    self.server_memory().map(|first| ServerMemory { first, ..ServerMemory::default() });
            }
            Announcement::Connected => {
                let resident = self.server_memory();
                if let Some((memory, resident)) = self.memory.as_mut().zip(resident) {
                    memory.connected = resident;
                }
            }
            Announcement::Measuring => self.measuring(),
            Announcement::Measured => self.measured(),
        }
    }
}

fn echo_arguments(EchoWork { shape, protocol, client_work, gzip }: EchoWork) -> Vec<String> {
    let mut arguments =
        vec!["--echo".to_owned(), shape.to_string(), "--protocol".to_owned(), protocol.name().to_owned()];
    match client_work {
        ClientWork::Objects => {}
        ClientWork::Times => arguments.push("--times".to_owned()),
        ClientWork::Bytes => arguments.push("--prepared".to_owned()),
    }
    arguments.extend(gzip.then(|| "--gzip".to_owned()));
    arguments
}

/// Encodes each byte as two hex digits.
fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).expect("half a byte is a digit");
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Formats whole microseconds, which every driver accepts.
fn micros(duration: Duration) -> String {
    format!("{}us", duration.as_micros())
}

#[cfg(test)]
mod tests {
    use thalweg_measure::size::ByteSize;

    use super::*;
    use crate::load::{Transport, Work};

    #[test]
    fn time_limit_by_call_count_allows_for_slow_server() {
        let point = Point {
            work: Work::Call(crate::record::CallType::Unary),
            size_bytes: ByteSize(0),
            transport: Transport::Tcp,
            in_flight: 1,
            connections: 1,
            active: None,
            tls: false,
            round_trip: Duration::ZERO,
            warmup: Duration::from_millis(200),
            duration: Duration::from_millis(2700),
        };
        // A gateway takes 7 ms for 5,000 strings, and several times that on a busy machine.
        assert!(time_limit(&point, Some(5000)) > 5 * 5000 * Duration::from_millis(7));
        assert_eq!(time_limit(&point, None), Duration::from_millis(200 + 2700) + DRIVER_PATIENCE);
    }
}
