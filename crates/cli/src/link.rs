//! `thalweg link`.

use std::io::{self, BufRead};
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use thalweg_link::{Address, Command, Cut, Jitter, Link, LinkError, LinkOptions, Loss, Rate, StallPlan};
use thalweg_measure::cpus::CpuList;
use thalweg_measure::size::ByteSize;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::failure::Failure;
use crate::format::Format;
use crate::terminal::{self, Syntax};
use crate::{runtime, signals, text};

const EXAMPLES: &str = "\
Examples:
  thalweg link --listen 127.0.0.1:6000 --to 127.0.0.1:50051 --delay 10ms
  thalweg load 127.0.0.1:6000 --call shop.Orders/Get      # through the link";

/// Emulate a network between a client and a server: delay, bandwidth, stalls and cuts
///
/// It reads commands from stdin, one per line, and answers each with a line on stdout: stall [DURATION], resume, cut
/// [reset|silent], refuse, accept, delay DURATION, jitter DURATION, rate RATE|unlimited, stats, reset (counters), quit.
/// SIGUSR1 toggles a stall, SIGUSR2 cuts all connections, SIGINT and SIGTERM quit.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LinkArgs {
    /// Address to listen on: HOST:PORT, unix:PATH or unix-abstract:NAME
    #[arg(long, value_name = "ADDR")]
    listen: Address,

    /// Address to forward connections to
    #[arg(long, value_name = "ADDR")]
    to: Address,

    /// One-way delay; a round trip takes twice as long
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = humantime::parse_duration)]
    delay: Duration,

    /// Largest deviation from --delay, or normal:DURATION (standard deviation)
    ///
    /// Bytes stay in order.
    #[arg(long, value_name = "DURATION", default_value = "0s")]
    jitter: Jitter,

    /// Bandwidth per direction, shared by all connections: 100mbit, 12.5MB/s [default: unlimited]
    #[arg(long, value_name = "RATE")]
    rate: Option<Rate>,

    /// Bytes in flight per connection and direction [default: from --rate and --delay, at least 1 MiB]
    #[arg(long, value_name = "SIZE")]
    buffer: Option<ByteSize>,

    /// Cut connections: after=TIME, bytes=N or every=TIME
    ///
    /// every= is random, with this mean. `,silent` leaves both ends half-open.
    #[arg(long, value_name = "WHEN")]
    loss_of_connection: Option<Loss>,

    /// Stall traffic, such as for=2s,after=10s,every=30s
    ///
    /// Without for=, forever; without after=, at once; without every=, only once.
    #[arg(long, value_name = "WHEN")]
    stall: Option<StallPlan>,

    /// Do not delay connection setup by a round trip
    #[arg(long)]
    no_handshake: bool,

    /// Random seed of jitter and cuts
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,

    /// Spin this long before each deadline: more precise, more CPU
    #[arg(long, value_name = "DURATION", default_value = "0s", value_parser = humantime::parse_duration)]
    spin: Duration,

    /// Run only on these CPUs: 0 or 0-3,8
    #[arg(long, value_name = "LIST")]
    cpus: Option<CpuList>,

    /// Output format of figures
    #[arg(short = 'O', long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// An event while the link runs.
enum Event {
    Line(String),
    ToggleStall,
    Cut,
}

pub(crate) fn run(args: LinkArgs) -> Result<ExitCode, Failure> {
    if let Some(cpus) = &args.cpus {
        runtime::pin(cpus)?;
    }
    let format = args.format;
    runtime::runtime(1)?.block_on(async {
        let interrupt = signals::interrupt()?;
        let mut events = events()?;
        let link = Link::start(args.options()).map_err(failure)?;
        say(&format!("listening on {}", link.address()))?;
        tokio::pin!(interrupt);
        loop {
            let event = tokio::select! {
                () = &mut interrupt => break,
                // Never `None`: the signal tasks keep their senders.
                Some(event) = events.recv() => event,
            };
            match apply(&event, &link, format) {
                Some(response) => say(&response)?,
                None => break,
            }
        }
        say(&figures(&link, format))?;
        Ok(ExitCode::SUCCESS)
    })
}

impl LinkArgs {
    fn options(self) -> LinkOptions {
        let mut options = LinkOptions::new(self.listen, self.to)
            .delay(self.delay)
            .jitter(self.jitter)
            .rate(self.rate)
            .loss_of_connection(self.loss_of_connection.unwrap_or_default())
            .handshake(!self.no_handshake)
            .seed(self.seed)
            .spin(self.spin);
        if let Some(ByteSize(bytes)) = self.buffer {
            options = options.buffer(usize::try_from(bytes).unwrap_or(usize::MAX));
        }
        match self.stall {
            Some(plan) => options.stall(plan),
            None => options,
        }
    }
}

fn failure(error: LinkError) -> Failure {
    match error {
        LinkError::TooLong(_) => Failure::bad_arguments(error),
        _ => Failure::failed(error),
    }
}

/// Receives lines of stdin and the two control signals.
fn events() -> Result<UnboundedReceiver<Event>, Failure> {
    let (sender, events) = unbounded_channel();
    for (kind, event) in [
        (SignalKind::user_defined1(), (|| Event::ToggleStall) as fn() -> Event),
        (SignalKind::user_defined2(), || Event::Cut),
    ] {
        let mut signals = signal(kind).map_err(|error| signals::handler_failure(&error))?;
        let sender = sender.clone();
        tokio::spawn(async move { while signals.recv().await.is_some() && sender.send(event()).is_ok() {} });
    }
    // Uses a detached thread, because a blocking read of stdin cannot be cancelled.
    runtime::thread(move || {
        for line in io::stdin().lock().lines() {
            let Ok(line) = line else { return };
            if sender.send(Event::Line(line)).is_err() {
                return;
            }
        }
    })?;
    Ok(events)
}

/// Handles an event. Returns the response, or `None` to quit.
fn apply(event: &Event, link: &Link, format: Format) -> Option<String> {
    let line = match event {
        Event::Line(line) => line.trim(),
        Event::ToggleStall if link.stats().stalled => "resume",
        Event::ToggleStall => "stall",
        Event::Cut => "cut",
    };
    match line {
        "quit" => return None,
        "stats" => return Some(figures(link, format)),
        _ => {}
    }
    let done =
        line.parse::<Command>().map_err(|error| format!("{error}, or stats or quit")).and_then(|command| {
            let concerned = link.execute(command).map_err(|error| error.to_string())?;
            Ok(match command {
                Command::Stall(None) => "stalled".to_owned(),
                Command::Stall(Some(time)) => format!("stalled for {}", humantime::format_duration(time)),
                Command::Resume => "resumed".to_owned(),
                Command::Cut(Cut::Reset) => format!("cut {concerned}"),
                Command::Cut(Cut::Silent) => format!("cut {concerned}, silently"),
                Command::Refuse => "refusing".to_owned(),
                Command::Accept => "accepting".to_owned(),
                Command::Delay(time) => format!("delay {}", humantime::format_duration(time)),
                Command::Jitter(jitter) => format!("jitter {jitter}"),
                Command::Rate(Some(rate)) => format!("rate {rate}"),
                Command::Rate(None) => "rate unlimited".to_owned(),
                Command::Reset => "reset".to_owned(),
            })
        });
    Some(done.unwrap_or_else(|error| format!("error: {error}")))
}

fn figures(link: &Link, format: Format) -> String {
    let stats = link.stats();
    match format {
        Format::Text => text::link(&stats).trim_end().to_owned(),
        // On one line, so that readers can find its end.
        Format::Json => serde_json::to_string(&stats).expect("figures are numbers and strings"),
    }
}

/// Prints one line and flushes, because scripts may wait for it.
fn say(line: &str) -> Result<(), Failure> {
    terminal::print(Syntax::Text, &format!("{line}\n"))
}
