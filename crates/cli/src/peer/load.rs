//! `thalweg peer load`: typed calls of BenchmarkService, the echo of messages, and the bare client, for the lab.

use std::cell::Cell;
use std::process::ExitCode;
use std::time::Duration;

use thalweg_load::bare;
use thalweg_load::peer::{Announcement, DriveError, Patience, drive};
use thalweg_load::record::{BareRun, CallType, LoadResult, LoadSettings};
use thalweg_load::spec::TIMEOUT_DEFAULT;
use thalweg_measure::descriptors;
use thalweg_measure::interrupt::Interrupt;

use super::load_arguments::PeerLoadArgs;
use crate::failure::{Failure, INTERRUPTED};
use crate::format::{Format, json};
use crate::load::{DURATION_DEFAULT, IN_FLIGHT_DEFAULT, WARM_UP_DEFAULT};
use crate::load_arguments::nanoseconds;
use crate::output::OutputFile;
use crate::terminal::Syntax;
use crate::{request, runtime, signals, text};

pub(super) fn run(args: &PeerLoadArgs) -> Result<ExitCode, Failure> {
    let settings = settings(args)?;
    let output = OutputFile::open(args.output.as_deref())?;
    let (result, was_interrupted) =
        run_driver(args, &settings).map_err(|failure| args.tls.explain(failure))?;
    match args.format {
        Format::Text => output.write(Syntax::Text, &text::load(&result))?,
        Format::Json => output.write(Syntax::Json, &json(&result))?,
    }
    verdict(&result, was_interrupted)
}

/// Returns the result, and whether the run was interrupted.
fn run_driver(args: &PeerLoadArgs, settings: &LoadSettings) -> Result<(LoadResult, bool), Failure> {
    let own = args.echo.own()?;
    // If this fails, the error is reported when connections are opened.
    let _ = descriptors::raise();
    let call_timeout = args.common.timeout.unwrap_or(TIMEOUT_DEFAULT);
    let connect = args.common.connect_timeout();
    let patience = Patience { connect, call: call_timeout };
    let announce = |it: Announcement| args.common.announce(it);
    let threads = args.runtime.threads(|_| 1)?;
    if settings.bare.is_some() {
        // Runs on this thread.
        let interrupt = Interrupt::on_signals().map_err(|error| signals::handler_failure(&error))?;
        let result = bare::drive(settings, patience, &interrupt, announce).map_err(failure)?;
        return Ok((result, false));
    }
    let was_interrupted = Cell::new(false);
    let result = runtime::runtime(threads)?.block_on(async {
        let interrupt = signals::interrupt()?;
        let interrupt = async {
            interrupt.await;
            was_interrupted.set(true);
        };
        drive(
            settings,
            own.as_ref(),
            |channel| args.tls.applied(&args.common.target, channel),
            patience,
            interrupt,
            announce,
        )
        .await
        .map_err(failure)
    })?;
    Ok((result, was_interrupted.get()))
}

fn settings(args: &PeerLoadArgs) -> Result<LoadSettings, Failure> {
    let call = args.call;
    if args.common.timeout == Some(Duration::ZERO) {
        return Err(Failure::bad_arguments("--timeout must be longer than 0"));
    }
    let duration = match (args.common.duration, args.common.total) {
        (None, None) => Some(DURATION_DEFAULT),
        (duration, _) => duration,
    };
    let warmup = args.common.warmup.unwrap_or(if args.common.total.is_some() {
        Duration::ZERO
    } else {
        WARM_UP_DEFAULT
    });
    let in_flight = args.common.in_flight.unwrap_or(match call {
        CallType::Unary => IN_FLIGHT_DEFAULT.max(args.common.connections),
        _ => args.common.connections,
    });
    let busy_poll = args.runtime.busy_poll.or(args.variant.busy_poll());
    // HTTP/1.1 has one call at a time on each connection.
    let echo = args.echo.work();
    let is_http1 = echo.is_some_and(|work| work.protocol.is_http1());
    Ok(LoadSettings {
        target: args.common.target.clone(),
        call,
        size_bytes: args.size.0,
        in_flight,
        connections: if is_http1 { in_flight } else { args.common.connections },
        lanes: args.common.lanes,
        echo,
        method: args.method.as_deref().map(|method| request::call(method, args.hex.as_ref())),
        message_ownership: args.variant.message_ownership(),
        warmup_ns: nanoseconds("--warmup", warmup)?,
        duration_ns: duration.map(|duration| nanoseconds("-z", duration)).transpose()?,
        total: args.common.total,
        bare: args.bare.map(|wire| BareRun { wire, active: args.active.unwrap_or(args.common.connections) }),
        busy_poll_ns: busy_poll.map(|it| nanoseconds("--busy-poll", it)).transpose()?,
        cpus: args.runtime.cpus.clone(),
    })
}

fn failure(error: DriveError) -> Failure {
    match &error {
        DriveError::Settings(_)
        | DriveError::Method(_)
        | DriveError::Run(thalweg_load::DriveError::Plan(_)) => Failure::bad_arguments(error),
        DriveError::Start(start) if start.is_misuse() => Failure::bad_arguments(error),
        DriveError::Start(_) | DriveError::Bare { .. } | DriveError::Run(_) => Failure::failed(error),
        DriveError::Interrupted => Failure::interrupted(error),
    }
}

/// Returns the exit code or the failure.
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
