//! `thalweg load` of gRPC's BenchmarkService, or of the echo of messages: what the lab drives.

use std::cell::{Cell, RefCell};
use std::process::ExitCode;
use std::time::Duration;

use thalweg::Code;
use thalweg_lab::bare;
use thalweg_lab::descriptors;
use thalweg_lab::drive::{Announcement, DriveError, Patience, drive};
use thalweg_lab::record::{BareRun, CallType, LoadResult, LoadSettings, Note};
use thalweg_measure::interrupt::Interrupt;
use thalweg_measure::usage::{KeptWaiting, OwnUsage};

use super::arguments::{LoadArgs, nanoseconds};
use super::defaults::{DURATION_DEFAULT, IN_FLIGHT_DEFAULT, TIMEOUT_DEFAULT, WARM_UP_DEFAULT};
use super::output::Output;
use crate::failure::{Failure, INTERRUPTED};
use crate::format::{Format, RunFormat, json};
use crate::{request, runtime, signals, text};

/// Drives calls of this type.
pub(super) fn run(args: &LoadArgs, call: CallType) -> Result<ExitCode, Failure> {
    let settings = settings(args, call)?;
    let format = match args.format {
        RunFormat::Text => Format::Text,
        RunFormat::Json => Format::Json,
        RunFormat::Csv | RunFormat::Html => {
            return Err(Failure::bad_arguments(
                "-O csv and -O html need a method, such as --call \
                 grpc.testing.BenchmarkService/UnaryCall, or a scenario",
            ));
        }
    };
    let output = Output::open(args.output.as_deref(), args.format)?;
    let (result, was_interrupted) = driven(args, &settings)?;
    output.write(&match format {
        Format::Text => text::load(&result),
        Format::Json => json(&result),
    })?;
    verdict(&result, was_interrupted)
}

/// What came of it, and whether it was interrupted.
fn driven(args: &LoadArgs, settings: &LoadSettings) -> Result<(LoadResult, bool), Failure> {
    let own = args.benchmark.echo.own()?;
    // With fewer there are fewer connections, which is said where they are opened.
    let _ = descriptors::raise();
    let call_timeout = args.timeout.unwrap_or(TIMEOUT_DEFAULT);
    let patience = Patience { connect: args.connect_timeout(), call: call_timeout, ..Patience::default() };
    let waiting = RefCell::new(Waiting::default());
    let announce = |it: Announcement| {
        if !args.is_watched() {
            waiting.borrow_mut().announced(it, &args.target);
        }
        args.announce(it);
    };
    let threads = args.runtime.threads(|_| 1)?;
    if settings.bare.is_some() {
        // On this thread.
        let interrupt = Interrupt::on_signals().map_err(Failure::failed)?;
        let mut result = bare::drive(settings, patience, &interrupt, announce).map_err(failure)?;
        result.notes.extend(waiting.into_inner().note);
        return Ok((result, false));
    }
    let was_interrupted = Cell::new(false);
    let mut result = runtime::runtime(threads)?.block_on(async {
        let interrupt = signals::interrupt()?;
        let interrupt = async {
            interrupt.await;
            was_interrupted.set(true);
        };
        drive(settings, own.as_ref(), args.set_up(), patience, interrupt, announce).await.map_err(failure)
    })?;
    result.notes.extend(waiting.into_inner().note);
    Ok((result, was_interrupted.get()))
}

/// How long this process waited for a CPU while it measured.
#[derive(Default)]
struct Waiting {
    own: Option<OwnUsage>,
    note: Option<Note>,
}

impl Waiting {
    fn announced(&mut self, announcement: Announcement, target: &str) {
        match announcement {
            Announcement::Measuring => self.own = Some(OwnUsage::begin(&[target.to_owned()])),
            Announcement::Measured => {
                let waiting = self.own.take().and_then(|own| own.waiting());
                let note = |KeptWaiting { reason, invalidates }| Note { text: reason.text, invalidates };
                self.note = waiting.map(note);
            }
            Announcement::First | Announcement::Connected => {}
        }
    }
}

fn settings(args: &LoadArgs, call: CallType) -> Result<LoadSettings, Failure> {
    if args.timeout == Some(Duration::ZERO) {
        return Err(Failure::bad_arguments(
            "--timeout 0 needs a method, such as --call \
             grpc.testing.BenchmarkService/UnaryCall",
        ));
    }
    let duration = match (args.duration, args.total) {
        (None, None) => Some(DURATION_DEFAULT),
        (duration, _) => duration,
    };
    let warmup = args.warmup.unwrap_or(if args.total.is_some() { Duration::ZERO } else { WARM_UP_DEFAULT });
    let in_flight = args.in_flight.unwrap_or(match call {
        CallType::Unary => IN_FLIGHT_DEFAULT.max(args.connections),
        _ => args.connections,
    });
    // HTTP/1.1 has a call at a time on each connection.
    let echo = args.benchmark.echo.work();
    let is_http1 = echo.is_some_and(|work| work.protocol.is_http1());
    Ok(LoadSettings {
        target: args.target.clone(),
        call,
        size_bytes: args.benchmark.size.0,
        in_flight,
        connections: if is_http1 { in_flight } else { args.connections },
        lanes: args.lanes,
        echo,
        method: args
            .benchmark
            .method
            .as_deref()
            .map(|method| request::call(method, args.benchmark.hex.as_ref())),
        handing: args.benchmark.variant,
        warmup_ns: nanoseconds("--warmup", warmup)?,
        duration_ns: duration.map(|duration| nanoseconds("-z", duration)).transpose()?,
        total: args.total,
        bare: args
            .benchmark
            .bare
            .map(|wire| BareRun { wire, active: args.benchmark.active.unwrap_or(args.connections) }),
        busy_poll_ns: args.runtime.busy_poll.map(|it| nanoseconds("--busy-poll", it)).transpose()?,
        cpus: args.runtime.cpus.clone(),
    })
}

/// The service of the call types.
const BENCHMARK_SERVICE: &str = "grpc.testing.BenchmarkService/";

fn failure(error: DriveError) -> Failure {
    match error {
        DriveError::Settings(_) | DriveError::Method(_) | DriveError::Target(_) => {
            Failure::bad_arguments(error)
        }
        DriveError::FirstCall { ref method, ref status, .. }
            if status.code() == Code::Unimplemented && method.starts_with(BENCHMARK_SERVICE) =>
        {
            let what_to_do = "without --call package.Service/Method, the server must offer BenchmarkService";
            Failure::failed(format!("{error}; {what_to_do}"))
        }
        DriveError::Connect(_)
        | DriveError::Silent { .. }
        | DriveError::Bare { .. }
        | DriveError::FirstCall { .. } => Failure::failed(error),
        DriveError::Interrupted => Failure::interrupted(error),
    }
}

/// The exit code, or what made the run a failure.
fn verdict(result: &LoadResult, interrupted: bool) -> Result<ExitCode, Failure> {
    if interrupted {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if !result.is_valid() && result.error_count() > 0 {
        let why = result.notes.iter().find(|note| note.invalidates).map(|note| note.text.as_str());
        return Err(Failure::failed(format!("invalid run: {}", why.unwrap_or_default())));
    }
    if result.messages > 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let errors: Vec<String> = result.errors.iter().map(|(code, count)| format!("{code} {count}")).collect();
    let first = result.notes.first().map(|note| note.text.as_str()).unwrap_or_default();
    Err(Failure::failed(match errors.as_slice() {
        [] => "no call finished in the measured time; use a longer -z".to_owned(),
        _ => format!("every call failed ({}): {first}", errors.join(", ")),
    }))
}
