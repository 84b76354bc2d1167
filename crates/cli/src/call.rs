//! `thalweg call`: calls any method with JSON, and lists and describes services.

mod arguments;
mod catalogue;
mod command;
mod complete;
mod connecting;
mod environment;
mod exchange;
mod printer;
mod saved;
mod timeline;

use std::process::ExitCode;

use thalweg_dynamic::texts::MessageFormat;
use thalweg_dynamic::{describe, list};
use thalweg_protobuf::printable;

use crate::failure::{Failure, INTERRUPTED};
use crate::{runtime, signals, terminal};

pub(crate) use arguments::CallArgs;
use command::CallCommand;
pub(crate) use complete::complete;

pub(crate) fn run(args: &CallArgs) -> Result<ExitCode, Failure> {
    let args = &environment::expanded(args)?;
    let (target, command) = command::parse(&args.words)?;
    if matches!(command, CallCommand::Method(_)) && args.output == MessageFormat::Binary {
        terminal::check_takes_bytes("use a pipe (… | xxd), or leave out -O binary")?;
    }
    let balancing = args.balancing.read()?;
    let files = args.files.read()?;
    if target.is_none() && files.is_none() {
        return Err(Failure::bad_arguments(
            "missing target; add one, such as localhost:50051, or use --proto or --protoset",
        ));
    }
    runtime::runtime(1)?.block_on(async {
        let interrupt = signals::interrupt()?;
        let done = async {
            let connecting =
                target.as_deref().map(|target| connecting::Connecting::new(target, args, &balancing));
            match command {
                CallCommand::List { service } => {
                    let mut catalogue = catalogue::of(files, connecting, args).await?;
                    if args.files.saves_descriptors() && service.is_none() {
                        catalogue::fetch_all(&mut catalogue).await?;
                    }
                    let names = list(&mut catalogue, service.as_deref()).await?;
                    printer::lines(names.iter().map(|name| printable::line(name).into_owned()))?;
                    args.files.write(&catalogue).map(|()| ExitCode::SUCCESS)
                }
                CallCommand::Describe { symbol } => {
                    let mut catalogue = catalogue::of(files, connecting, args).await?;
                    let text = describe(&mut catalogue, symbol.as_deref(), args.template).await?;
                    printer::lines([text.trim_end().to_owned()])?;
                    args.files.write(&catalogue).map(|()| ExitCode::SUCCESS)
                }
                CallCommand::Method(method) => match connecting {
                    Some(connecting) => exchange::run(files, connecting, &method, args).await,
                    None => Err(Failure::bad_arguments(format!(
                        "missing target for {method}; add one before it, such as localhost:50051"
                    ))),
                },
            }
        };
        tokio::select! {
            done = done => done.map_err(|failure| args.tls.explain(failure)),
            () = interrupt => Ok(ExitCode::from(INTERRUPTED)),
        }
    })
}
