//! Measures of a codec study.

use thalweg_measure::statistics::median;

use super::scope::Scope;
use super::value::{Value, ValueResult};
use crate::codec::CodecResults;
use crate::codec::line::{CodecLine, Operation};

/// Returns the measure of this name for the scope's codec and message, in ns per round trip or in bytes. `None` if a
/// codec study does not define it.
pub(super) fn measure(results: &CodecResults, name: &str, scope: &Scope<'_>) -> Option<ValueResult> {
    let of_scope = |figure: fn(&CodecResults, &str, &str, &Scope<'_>) -> Option<f64>| {
        let (codec, data) = (scope.words("codec")?, scope.words("data")?);
        figure(results, &codec, &data, scope).map(Value::Number).ok_or_else(|| {
            let left_out = results.left_out.first().map(|it| format!("{}: {}", it.what, it.reason));
            left_out.unwrap_or_else(|| "nothing was measured on the JVM".to_owned())
        })
    };
    let loops = results.peers.iter().flat_map(|peer| &peer.loops);
    Some(match name {
        "looped" => of_scope(looped),
        "by_jmh" => of_scope(by_jmh),
        "in_rust" => of_scope(in_rust),
        "bytes" => of_scope(bytes),
        "loops" => Ok(Value::ascending(loops.map(|it| it.conversions))),
        "messages" => Ok(results.data.iter().map(|data| data.name.as_str()).collect()),
        _ => return None,
    })
}

fn is(line: &CodecLine, codec: &str, data: &str) -> bool {
    line.codec == codec && line.data == data
}

/// Returns the time in a plain loop with the scope's number of conversions, as the median over processes.
fn looped(results: &CodecResults, codec: &str, data: &str, scope: &Scope<'_>) -> Option<f64> {
    let conversions = scope.number("conversions").ok()? as u64;
    let loops = results.peers.iter().flat_map(|peer| &peer.loops);
    let of = loops.filter(|it| is(&it.line, codec, data) && it.conversions == conversions);
    median(of.map(|it| it.elapsed_ns as f64 / it.conversions as f64))
}

fn by_jmh(results: &CodecResults, codec: &str, data: &str, _: &Scope<'_>) -> Option<f64> {
    let mut lines = results.peers.iter().flat_map(|peer| &peer.lines);
    let line = lines.find(|it| is(&it.line, codec, data) && it.line.operation == Operation::RoundTrip)?;
    median(line.ns_per_conversion.iter().copied())
}

/// Returns the time in the longest measured step.
fn in_rust(results: &CodecResults, codec: &str, data: &str, _: &Scope<'_>) -> Option<f64> {
    let of = results.steps.iter().filter(|step| {
        is(&step.line, codec, data) && step.line.operation == Operation::RoundTrip && !step.is_duplicate
    });
    let step = of.max_by_key(|step| step.conversions)?;
    median(step.elapsed_ns.iter().map(|&ns| ns as f64 / step.conversions as f64))
}

fn bytes(results: &CodecResults, codec: &str, data: &str, _: &Scope<'_>) -> Option<f64> {
    let mut lines = results.peers.iter().flat_map(|peer| &peer.lines);
    Some(lines.find(|it| is(&it.line, codec, data))?.bytes)
}
