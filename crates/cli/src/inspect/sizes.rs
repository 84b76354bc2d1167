//! What a message costs: field by field, and in other forms.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use thalweg_protobuf::dissect::account::{Account, Share};

use super::Inspection;
use super::paint::{Paint, Role};

/// Rows that are shown, if not all are: those of the most bytes.
const SHARES_SHOWN: usize = 24;

/// What all messages of an input cost together.
pub(super) struct Sizes {
    pub(super) account: Account,
    /// Before messages.
    pub(super) framing: usize,
    /// The same content in several forms.
    pub(super) forms: Vec<Form>,
}

/// A form of the same content.
pub(super) struct Form {
    pub(super) name: &'static str,
    pub(super) bytes: usize,
    pub(super) gzip: usize,
}

impl Sizes {
    pub(super) fn of(inspection: &Inspection) -> Self {
        let input = &inspection.input.bytes;
        let mut account = Account::default();
        let mut protobuf = Vec::new();
        for opened in &inspection.frames {
            if let Some((message, bytes)) = opened.message(input) {
                account.add(bytes, message);
                protobuf.extend_from_slice(message.span.of(bytes));
            }
        }
        let framing = inspection.frames.iter().map(|opened| opened.frame.prefix_span.len()).sum();
        let forms = vec![Form::new("Protobuf", &protobuf)];
        Self { account, framing, forms }
    }
}

impl Form {
    fn new(name: &'static str, bytes: &[u8]) -> Self {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let gzip = encoder.write_all(bytes).and_then(|()| encoder.finish()).map_or(0, |gzip| gzip.len());
        Self { name, bytes: bytes.len(), gzip }
    }
}

/// Writes the account as a table.
pub(super) fn write(
    output: &mut dyn Write,
    inspection: &Inspection,
    paint: Paint,
    is_full: bool,
) -> io::Result<()> {
    let sizes = Sizes::of(inspection);
    let shares = sizes.account.shares();
    let total = sizes.account.rest() + sizes.account.parts().iter().sum::<usize>();
    if !shares.is_empty() {
        writeln!(output)?;
        shares_table(output, &shares, total, paint, is_full)?;
    }
    let mut row = |name: &str, bytes: usize| match bytes {
        0 => Ok(()),
        _ => writeln!(output, "{name:<WIDTH_OF_NAMES$}{bytes:>44}"),
    };
    row("no fields", sizes.account.rest())?;
    row("framing", sizes.framing)?;
    if inspection.frames.is_empty() {
        return Ok(());
    }
    writeln!(output)?;
    writeln!(
        output,
        "{}",
        paint.paint(
            Role::Name,
            &format!("{:<WIDTH_OF_NAMES$}{:>9}{:>9}", "bytes in other forms", "as it is", "gzip")
        )
    )?;
    for form in &sizes.forms {
        writeln!(output, "{:<WIDTH_OF_NAMES$}{:>9}{:>9}", form.name, form.bytes, form.gzip)?;
    }
    Ok(())
}

const WIDTH_OF_NAMES: usize = 28;

fn shares_table(
    output: &mut dyn Write,
    shares: &[&Share],
    total: usize,
    paint: Paint,
    is_full: bool,
) -> io::Result<()> {
    let heading = format!(
        "{:<WIDTH_OF_NAMES$}{:>8}{:>8}{:>8}{:>10}{:>10}",
        "bytes by field", "times", "tags", "lengths", "payload", "in all"
    );
    writeln!(output, "{}", paint.paint(Role::Name, &heading))?;
    let mut by_size: Vec<usize> = shares.iter().map(|share| share.total).collect();
    by_size.sort_unstable_by(|a, b| b.cmp(a));
    let least = if is_full { 0 } else { by_size.get(SHARES_SHOWN).map_or(0, |bytes| bytes + 1) };
    let mut left_out = 0;
    let mut names: Vec<String> = Vec::new();
    for share in shares {
        names.truncate(share.path.len() - 1);
        names.push(
            share
                .name
                .clone()
                .unwrap_or_else(|| share.path.last().map(ToString::to_string).unwrap_or_default()),
        );
        if share.total < least {
            left_out += 1;
            continue;
        }
        let name = format!("{}{}", "  ".repeat(share.path.len() - 1), names.join("."));
        let percent = 100.0 * share.total as f64 / total.max(1) as f64;
        writeln!(
            output,
            "{name:<WIDTH_OF_NAMES$}{:>8}{:>8}{:>8}{:>10}{:>10}{percent:>6.1} %",
            share.count, share.tag, share.length, share.payload, share.total
        )?;
    }
    if left_out > 0 {
        writeln!(output, "{left_out} smaller ones: --full")?;
    }
    Ok(())
}
