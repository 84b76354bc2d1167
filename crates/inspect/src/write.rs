//! Writers of inspection results. Each fails only if the output fails.

use std::io::{self, Write};

use thalweg_protobuf_text::dissect::framing::split;
use thalweg_protobuf_text::dissect::{Limits, Message};

use crate::inspection::Inspection;
use crate::paint::Paint;
use crate::{json, sizes, tree};

/// Writes bytes with their meaning, and sizes by field. Long values are shortened unless `is_full`.
pub fn tree(
    inspection: &Inspection<'_>,
    output: &mut dyn Write,
    paint: Paint,
    width: usize,
    is_full: bool,
) -> io::Result<()> {
    tree::write(output, inspection, paint, width, is_full)?;
    sizes::write(output, inspection, paint, is_full)
}

/// Writes a JSON document of the schema `thalweg.inspect/1`.
pub fn json(inspection: &Inspection<'_>, output: &mut dyn Write) -> io::Result<()> {
    json::write(output, inspection)
}

/// Writes text that [`assemble`](thalweg_protobuf_text::dissect::text::assemble) converts back to the same bytes.
pub fn text(inspection: &Inspection<'_>, output: &mut dyn Write) -> io::Result<()> {
    let input = &inspection.input.bytes;
    let frames = split(input, inspection.framing, &Limits::default());
    let messages: Vec<Option<Message>> =
        inspection.frames.iter().map(|decoded| decoded.uncompressed().cloned()).collect();
    let text = thalweg_protobuf_text::dissect::text::write_frames(input, &frames, &messages);
    output.write_all(text.as_bytes())
}
