//! Size of messages by field and in other formats.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use thalweg_protobuf::json::{self, PrintOptions};
use thalweg_protobuf::{MessageType, msgpack};
use thalweg_protobuf_text::dissect::account::{ByteAccount, FieldBytes};

use crate::inspection::Inspection;
use crate::paint::{Paint, Role};

/// Maximum number of rows shown. The largest are kept.
const FIELDS_SHOWN: usize = 24;

/// Sizes of all messages of an input together.
pub(crate) struct Sizes {
    pub(crate) account: ByteAccount,
    /// Bytes of prefixes.
    pub(crate) framing: usize,
    /// Sizes in several formats.
    pub(crate) formats: Vec<FormatSize>,
    /// Why there are no other formats despite a schema.
    pub(crate) conversion_error: Option<String>,
}

/// Size in one format.
pub(crate) struct FormatSize {
    pub(crate) name: &'static str,
    pub(crate) bytes: usize,
    pub(crate) gzip: usize,
    pub(crate) zstd: usize,
}

impl Sizes {
    pub(crate) fn of(inspection: &Inspection) -> Self {
        let mut account = ByteAccount::default();
        let mut protobuf = Vec::new();
        for (message, bytes) in inspection.messages() {
            account.add(bytes, message);
            protobuf.extend_from_slice(message.span.of(bytes));
        }
        let framing = inspection.frames.iter().map(|decoded| decoded.frame.prefix_span.len()).sum();
        let mut sizes = Self {
            account,
            framing,
            formats: vec![FormatSize::new("Protobuf", &protobuf)],
            conversion_error: None,
        };
        if let Some(message_type) = inspection.message_type
            && let Err(why) = sizes.convert(inspection, message_type)
        {
            sizes.conversion_error = Some(why);
        }
        sizes
    }

    /// Adds the sizes in other formats. Fails if a message cannot be converted.
    fn convert(&mut self, inspection: &Inspection, message_type: MessageType) -> Result<(), String> {
        let (mut json, mut msgpack) = (Vec::new(), Vec::new());
        // Missing required fields are shown in the tree.
        let options = PrintOptions::default().allow_partial(true);
        for (message, bytes) in inspection.messages() {
            let wire = message.span.of(bytes);
            json::print(message_type, wire, &options, &mut json).map_err(|error| error.to_string())?;
            msgpack::print(message_type, wire, &options, &mut msgpack).map_err(|error| error.to_string())?;
        }
        self.formats.extend([FormatSize::new("JSON", &json), FormatSize::new("MessagePack", &msgpack)]);
        Ok(())
    }
}

impl FormatSize {
    fn new(name: &'static str, bytes: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let gzip = encoder.write_all(bytes).and_then(|()| encoder.finish()).map_or(0, |gzip| gzip.len());
        let zstd = zstd::bulk::compress(bytes, zstd::DEFAULT_COMPRESSION_LEVEL).map_or(0, |zstd| zstd.len());
        Self { name, bytes: bytes.len(), gzip, zstd }
    }
}

/// Writes the sizes as tables.
pub(crate) fn write(
    output: &mut dyn Write,
    inspection: &Inspection,
    paint: Paint,
    is_full: bool,
) -> io::Result<()> {
    let sizes = Sizes::of(inspection);
    let fields = sizes.account.fields();
    let total = sizes.account.rest() + sizes.account.parts().iter().sum::<usize>();
    if !fields.is_empty() {
        writeln!(output)?;
        fields_table(output, &fields, total, paint, is_full)?;
    }
    let mut line = |name: &str, bytes: usize| match bytes {
        0 => Ok(()),
        _ => writeln!(output, "{name:<WIDTH_OF_NAMES$}{bytes:>44}"),
    };
    line("no fields", sizes.account.rest())?;
    line("framing", sizes.framing)?;
    if inspection.frames.is_empty() {
        return Ok(());
    }
    writeln!(output)?;
    writeln!(
        output,
        "{}",
        paint.paint(
            Role::Name,
            &format!(
                "{:<WIDTH_OF_NAMES$}{:>9}{:>9}{:>9}",
                "bytes in other forms", "as it is", "gzip", "zstd"
            )
        )
    )?;
    for format in &sizes.formats {
        let FormatSize { name, bytes, gzip, zstd } = format;
        writeln!(output, "{name:<WIDTH_OF_NAMES$}{bytes:>9}{gzip:>9}{zstd:>9}")?;
    }
    match (&sizes.conversion_error, inspection.message_type) {
        (Some(why), _) => writeln!(output, "cannot be converted to JSON and MessagePack: {why}"),
        (None, None) => writeln!(output, "JSON and MessagePack need a schema: --proto or --protoset"),
        _ => Ok(()),
    }
}

const WIDTH_OF_NAMES: usize = 28;

fn fields_table(
    output: &mut dyn Write,
    fields: &[&FieldBytes],
    total: usize,
    paint: Paint,
    is_full: bool,
) -> io::Result<()> {
    let heading = format!(
        "{:<WIDTH_OF_NAMES$}{:>8}{:>8}{:>8}{:>10}{:>10}",
        "bytes by field", "times", "tags", "lengths", "payload", "in all"
    );
    writeln!(output, "{}", paint.paint(Role::Name, &heading))?;
    let mut by_size: Vec<usize> = fields.iter().map(|field| field.total).collect();
    by_size.sort_unstable_by(|a, b| b.cmp(a));
    let least = if is_full { 0 } else { by_size.get(FIELDS_SHOWN).map_or(0, |bytes| bytes + 1) };
    let mut omitted = 0;
    let mut names: Vec<String> = Vec::new();
    for field in fields {
        names.truncate(field.path.len() - 1);
        names.push(
            field
                .name
                .clone()
                .unwrap_or_else(|| field.path.last().map(ToString::to_string).unwrap_or_default()),
        );
        if field.total < least {
            omitted += 1;
            continue;
        }
        let name = format!("{}{}", "  ".repeat(field.path.len() - 1), names.join("."));
        let percent = 100.0 * field.total as f64 / total.max(1) as f64;
        writeln!(
            output,
            "{name:<WIDTH_OF_NAMES$}{:>8}{:>8}{:>8}{:>10}{:>10}{percent:>6.1} %",
            field.count, field.tag, field.length, field.payload, field.total
        )?;
    }
    if omitted > 0 {
        writeln!(output, "{omitted} smaller ones omitted; use --full")?;
    }
    Ok(())
}
