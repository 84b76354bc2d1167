//! Tests of codec studies with made-up figures.

use super::sample::codec as sample;
use crate::codec::line::{Decodes, Operation};
use crate::codec::tables::PeerLine;
use crate::codec::{CodecAnalysis, CodecResults, report};
use crate::report::terminal;

fn analyse(results: &CodecResults) -> CodecAnalysis<'_> {
    CodecAnalysis::of(results)
}

fn finding(results: &CodecResults, topic: &str) -> Option<String> {
    let findings = analyse(results).findings;
    findings.into_iter().find(|it| it.topic == topic).map(|it| it.text)
}

/// Returns the doubts, one per line.
fn doubted(results: &CodecResults) -> String {
    analyse(results).doubts.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn check(topic: &str, words: &[&str]) {
    let text = finding(&sample::quick(), topic).unwrap_or_else(|| panic!("nothing is said of: {topic}"));
    for words in words {
        assert!(text.contains(words), "{topic}: {text}\ndoes not say: {words}");
    }
}

#[test]
fn figures_are_medians_of_the_largest_step() {
    let results = sample::quick();
    let analysis = analyse(&results).figures;
    let line = analysis.line("small", "serde_json", Operation::Encode).unwrap();
    assert!((line.ns - 300.0).abs() < 0.01 && line.conversions() == 1000);
    assert_eq!(line.steps.len(), 2);
    assert!((line.bytes_per_s() - 60.0 * 1e9 / 300.0).abs() < 1e6);
    let noise = analysis.noise.unwrap();
    assert_eq!(noise.doubles, 6);
    assert!((noise.floor - 1.04).abs() < 0.001, "{noise:?}");
    // Two conversions of 100 ns on each side, in addition to a call of 50 µs.
    let share = analysis.shares.iter().find(|it| it.data == "small" && it.in_flight == 1).unwrap();
    assert!((share.share() - 400.0 / 50_400.0).abs() < 1e-6);
}

#[test]
fn findings_follow_figures() {
    check("Where Protobuf wins", &["3.0 times prost’s time to encode small", "0.95 times for strings"]);
    check(
        "Where it does not",
        &[
            "JSON took less time at strings encode",
            "(0.95 times)",
            "MessagePack took less time at strings",
            "(0.80 times)",
        ],
    );
    check("Bytes", &["1.0 (strings) to 3.0 times (small)", "do not get fewer by compression"]);
    check(
        "Share of a whole call",
        &["0.79 % (small)", "with prost", "with serde_json", "With 64 calls in flight"],
    );
    check("MessagePack", &["0.80 (strings) to 1.5 times (small) prost’s time"]);
    check(
        "Type at run time",
        &[
            "what it decodes is borrowed, read.",
            "prost takes 0.50 to 0.50 times its time",
            "to decode (owned)",
        ],
    );
    check("On the JVM", &["jackson takes 3.0", "is reached by none"]);
    check("Noise", &["6 lines", "4.0 % at most"]);
    let results = sample::quick();
    let answer = analyse(&results).answer.unwrap();
    assert_eq!(
        answer,
        "As JSON, messages take 0.95 to 3.0 times the time of Protobuf, and 1.0 to 3.0 times the bytes"
    );
    assert_eq!(analyse(&results).doubts, []);
}

#[test]
fn difference_within_codec_noise_does_not_count() {
    let mut results = sample::quick();
    for step in results.steps.iter_mut().filter(|step| step.is_duplicate) {
        step.elapsed_ns.iter_mut().for_each(|ns| *ns = *ns * 11 / 10);
    }
    let text = finding(&results, "Where it does not").unwrap();
    assert!(text.starts_with("JSON was not slower beyond the noise at strings encode"), "{text}");
}

#[test]
fn fast_dynamic_codec_does_not_hide_loss_of_generated_code() {
    let mut results = sample::quick();
    make_fast(&mut results, "dynamic");
    results.codecs.iter_mut().for_each(|codec| codec.decodes = Some(Decodes::Owned));
    let text = finding(&results, "Where it does not").unwrap();
    assert!(
        text.starts_with("The fastest JSON codec was slower than the fastest of Protobuf everywhere."),
        "{text}"
    );
    let of_known = "Of codecs that know the type when they are compiled, JSON’s was not slower beyond the noise at \
                    strings";
    assert!(text.contains(of_known), "{text}");
}

fn make_fast(results: &mut CodecResults, codec: &str) {
    for step in results.steps.iter_mut().filter(|step| step.line.codec == codec) {
        step.elapsed_ns.iter_mut().for_each(|ns| *ns /= 10);
    }
}

#[test]
fn fast_borrowing_codec_does_not_hide_loss_of_owning_ones() {
    let mut results = sample::quick();
    make_fast(&mut results, "dynamic");
    let text = finding(&results, "Where it does not").unwrap();
    assert!(text.contains("JSON took less time at strings decode: "), "{text}");
    assert!(
        text.contains("Owned results are compared with owned ones") && !text.contains("with dynamic"),
        "{text}"
    );
    // It is compared with another codec that borrows.
    let mut results = sample::quick();
    let serde_json = results.codecs.iter_mut().find(|codec| codec.name == "serde_json").unwrap();
    serde_json.decodes = Some(Decodes::Borrowed);
    let text = finding(&results, "Where it does not").unwrap();
    assert!(text.contains("strings decode, borrowed: ") && text.contains("with dynamic ("), "{text}");
}

#[test]
fn comparison_of_borrowing_and_owning_codecs_is_marked() {
    let mut results = sample::quick();
    results.steps.retain(|step| step.line.codec != "prost");
    let unlike = "dynamic borrows what it decodes, and each field is read; serde_json owns it";
    for topic in ["Where Protobuf wins", "Share of a whole call"] {
        let text = finding(&results, topic).unwrap();
        assert!(text.contains(unlike), "{topic}: {text}");
    }
    let text = finding(&results, "MessagePack").unwrap();
    assert!(
        text.contains("dynamic borrows what it decodes, and each field is read; rmp-serde owns it"),
        "{text}"
    );
    assert!(!finding(&sample::quick(), "Where Protobuf wins").unwrap().contains("borrows"));
}

#[test]
fn decoder_rows_state_ownership() {
    let results = sample::quick();
    let report = report(&analyse(&results));
    let text = terminal(&report);
    // Two tables of three, since encoding does not borrow.
    assert_eq!(text.matches("&dynamic").count(), 2, "{text}");
    assert!(!text.contains("&prost"), "{text}");
    let page = report.page;
    assert_eq!(page.matches("<td class=\"words\">borrowed, read</td>").count(), 2 * 2);
    let csv = report.csv;
    let borrowed = |line: &&str| line.contains(",dynamic,Protobuf,true,true,");
    assert_eq!(csv.lines().filter(borrowed).count(), 2 * 2 * 2, "{csv}");
}

#[test]
fn single_message_has_single_ratio() {
    let mut results = sample::quick();
    results.data.truncate(1);
    let text = finding(&results, "Bytes").unwrap();
    assert!(text.starts_with("JSON is 3.0 times the bytes of Protobuf."), "{text}");
    let text = finding(&results, "MessagePack").unwrap();
    assert!(text.contains("takes 1.5 times prost’s time"), "{text}");
}

#[test]
fn peer_results_are_judged() {
    let mut results = sample::quick();
    let slow = |line: &&mut PeerLine| line.line.codec == "jackson" && line.line.data == "small";
    for line in results.peers[0].lines.iter_mut().filter(slow) {
        line.ns_per_conversion = vec![4000.0, 3000.0, 2900.0];
    }
    let text = finding(&results, "On the JVM").unwrap();
    assert!(text.contains("is reached by small alone"), "{text}");
    let doubts = doubted(&results);
    assert!(doubts.contains("1 of 4 results of other programs are unstable"), "{doubts}");
}

#[test]
fn missing_measurements_are_reported() {
    let mut results = sample::quick();
    results.planned += 1;
    results.machine.load_average = 3.0;
    results.peers.clear();
    let doubts = doubted(&results);
    assert!(doubts.contains("cut short") && doubts.contains("load average 3.0"), "{doubts}");
    assert_eq!(finding(&results, "On the JVM"), None);
    results.steps.clear();
    assert_eq!(analyse(&results).answer, None);
    assert!(report(&analyse(&results)).page.contains("Nothing was measured."));
}

#[test]
fn results_survive_their_json_and_become_rows() {
    let results = sample::quick();
    let json = serde_json::to_string(&results).unwrap();
    assert_eq!(serde_json::from_str::<CodecResults>(&json).unwrap(), results);
    let csv = report(&analyse(&results)).csv;
    // Two messages, four codecs, three operations, two steps; and the peer's two codecs with one operation.
    assert_eq!(csv.lines().count(), 1 + 2 * 4 * 3 * 2 + 2 * 2);
    let columns = |line: &str| line.split(',').count();
    assert!(csv.lines().all(|line| columns(line) == columns(csv.lines().next().unwrap())));
    let text = terminal(&report(&analyse(&results)));
    assert!(text.contains("round trip") && text.contains("Where Protobuf wins"), "{text}");
}
