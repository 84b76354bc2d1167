//! The codec study: times, instructions and bytes by codec and message, and what the study says of them.

use serde_json::Value;

use super::table::markdown;
use crate::bench::table::grouped;
use crate::figures::numbers;
use crate::figures::results::Results;
use crate::job::Failure;

/// Operations as the results name them, and as the tables do.
const OPERATIONS: [(&str, &str); 3] =
    [("encode", "encode"), ("decode", "decode"), ("round_trip", "round trip")];
/// The message whose instructions stand in the table.
const COUNTED: &str = "order";

/// A table of times for each operation, one of instructions and allocations, and one of bytes.
pub(in crate::figures) fn codec(results: &Results) -> Result<String, Failure> {
    let figures = results.figures("codec")?;
    let mut parts = vec![results.caption(&["codec"]), noise(figures)];
    parts.extend(OPERATIONS.map(|operation| times(figures, operation)));
    parts.push(format!(
        "Instructions of a conversion, and blocks that it asks of the allocator; neither is disturbed by what else \
         runs:\n\n{}",
        counts(figures)
    ));
    parts.push(format!(
        "Bytes of a message: raw, and each compressed by itself with gzip and with zstd:\n\n{}",
        bytes(figures)
    ));
    Ok(parts.join("\n\n"))
}

/// What the study itself says, finding by finding.
pub(in crate::figures) fn codec_findings(results: &Results) -> Result<String, Failure> {
    let findings = array(results.figures("codec")?, "findings");
    let line = |finding: &Value| format!("- **{}.** {}", text(finding, "topic"), text(finding, "text"));
    Ok(findings.iter().map(line).collect::<Vec<_>>().join("\n"))
}

/// Ten million conversions in one window.
pub(in crate::figures) fn codec_ten_million(results: &Results) -> Result<String, Failure> {
    let figures = results.figures("codec-ten-million")?;
    let mut rows = Vec::new();
    for codec in codecs(figures) {
        let ns = OPERATIONS.map(|(operation, _)| {
            line(figures, "person-sparse", &codec, operation).and_then(|line| line["ns"].as_f64())
        });
        let mut row = vec![format!("`{codec}`")];
        row.extend(ns.map(shown_time));
        row.push(ns[2].map_or_else(missing, |ns| format!("{:.2} s", ns * 1e7 / 1e9)));
        rows.push(row);
    }
    let heads = ["`person-sparse`, 10⁷", "encode", "decode", "round trip", "ten million round trips"];
    let caption = results.caption(&["codec-ten-million"]);
    Ok(format!("{caption}\n\n{}\n\n{}", noise(figures), markdown(&heads, &rows)))
}

fn noise(figures: &Value) -> String {
    let noise = &figures["noise"];
    let percent = |key: &str| noise[key].as_f64().map_or_else(missing, |ratio| numbers::share(ratio - 1.0));
    format!(
        "Medians of {} rounds at the largest step that fitted. Of {} lines measured twice the two differed by {} in \
         the middle and {} at most: a difference as small as that says nothing.",
        figures["rounds"],
        noise["doubles"],
        percent("typical"),
        percent("most"),
    )
}

fn times(figures: &Value, (operation, shown): (&str, &str)) -> String {
    let data = data(figures);
    let rows = codecs(figures).into_iter().filter_map(|codec| {
        let lines: Vec<_> = data.iter().map(|data| line(figures, data, &codec, operation)).collect();
        let known = lines.iter().flatten().next()?;
        let mut row = vec![name(known)];
        row.extend(lines.iter().map(|line| shown_time(line.and_then(|line| line["ns"].as_f64()))));
        Some(row)
    });
    let heads: Vec<&str> = [shown].into_iter().chain(data.iter().map(String::as_str)).collect();
    markdown(&heads, &rows.collect::<Vec<_>>())
}

fn counts(figures: &Value) -> String {
    let rows = codecs(figures).into_iter().filter_map(|codec| {
        let [encode, decode] =
            ["encode", "decode"].map(|operation| line(figures, COUNTED, &codec, operation));
        let (encode, decode) = (encode?, decode?);
        if encode["of_peer"] == true {
            return None;
        }
        let instructions = |line: &Value| line["instructions"].as_f64().map_or_else(missing, grouped);
        let blocks = decode["blocks"].as_f64().map_or_else(missing, |blocks| format!("{blocks:.1}"));
        Some(vec![name(decode), instructions(encode), instructions(decode), blocks])
    });
    let head = format!("`{COUNTED}`");
    let heads = [head.as_str(), "encode: instructions", "decode: instructions", "decode: blocks"];
    markdown(&heads, &rows.collect::<Vec<_>>())
}

/// A row for each set of sizes: codecs that make the same bytes share one.
fn bytes(figures: &Value) -> String {
    let data = data(figures);
    let mut rows: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for codec in codecs(figures) {
        let sizes = array(figures, "sizes");
        let cell = |data: &String| {
            let size =
                sizes.iter().find(|size| text(size, "data") == *data && text(size, "codec") == codec)?;
            let bytes = |key: &str| size[key].as_f64().map_or_else(missing, grouped);
            Some([bytes("raw"), bytes("gzip"), bytes("zstd")].join("; "))
        };
        let Some(cells) = data.iter().map(cell).collect::<Option<Vec<_>>>() else { continue };
        let name = format!("`{codec}`");
        match rows.iter_mut().find(|(_, known)| *known == cells) {
            Some((names, _)) => names.push(name),
            None => rows.push((vec![name], cells)),
        }
    }
    let heads: Vec<&str> = ["raw; gzip; zstd"].into_iter().chain(data.iter().map(String::as_str)).collect();
    let rows = rows.into_iter().map(|(names, cells)| [vec![names.join(", ")], cells].concat());
    markdown(&heads, &rows.collect::<Vec<_>>())
}

/// In the study's order.
fn codecs(figures: &Value) -> Vec<String> {
    names(figures, "codecs")
}

fn data(figures: &Value) -> Vec<String> {
    names(figures, "data")
}

fn names(figures: &Value, key: &str) -> Vec<String> {
    array(figures, key).iter().map(|it| text(it, "name").to_owned()).collect()
}

fn line<'a>(figures: &'a Value, data: &str, codec: &str, operation: &str) -> Option<&'a Value> {
    array(figures, "lines").iter().find(|line| {
        text(line, "data") == data && text(line, "codec") == codec && text(line, "operation") == operation
    })
}

/// The codec of a line, marked where what it decodes is borrowed.
fn name(line: &Value) -> String {
    let mark = if line["decodes"] == "borrowed" { "&" } else { "" };
    format!("{mark}`{}`", text(line, "codec"))
}

fn array<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn shown_time(ns: Option<f64>) -> String {
    ns.map_or_else(missing, numbers::time)
}

fn missing() -> String {
    "–".to_owned()
}
