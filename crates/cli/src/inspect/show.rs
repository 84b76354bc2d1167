//! Prints calls and messages.

use std::io::Write;

use thalweg_inspect::transcript::Transcript;
use thalweg_inspect::{Inspection, write};
use thalweg_protobuf::Schema;

use super::arguments::{Format, InspectArgs};
use super::{call, paint};
use crate::failure::Failure;
use crate::terminal::written;

/// Writes a call. Returns the first error of its messages.
pub(super) fn show(
    args: &InspectArgs,
    call: &Transcript<'_>,
    schema: &Schema,
    output: &mut dyn Write,
) -> Result<Option<String>, Failure> {
    let inspections = call.inspections();
    if args.format == Format::Json {
        written(writeln!(output, "{:#}", call.json(&inspections)))?;
    } else {
        written(output.write_all(call::heading(call).as_bytes()))?;
        for (_, inspection) in &inspections {
            take_apart(args, inspection, output)?;
            written(output.write_all(b"\n"))?;
        }
        written(output.write_all(call::ending(call, schema).as_bytes()))?;
    }
    Ok(inspections.iter().find_map(|(_, inspection)| inspection.verdict()))
}

/// Writes the messages of an input.
pub(super) fn take_apart(
    args: &InspectArgs,
    inspection: &Inspection<'_>,
    output: &mut dyn Write,
) -> Result<(), Failure> {
    written(match args.format {
        Format::Tree => {
            let paint = paint::paint(args.color, args.output.is_none());
            let width = args.width.map_or_else(|| paint::width(args.output.is_none()), usize::from);
            write::tree(inspection, output, paint, width, args.full)
        }
        Format::Text => {
            let heading = "# Written by `thalweg inspect -O text`; convert it back with `thalweg inspect \
                           --assemble`.\n";
            output.write_all(heading.as_bytes()).and_then(|()| write::text(inspection, output))
        }
        Format::Json => write::json(inspection, output),
    })
}
