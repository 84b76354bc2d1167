//! Tests of JSON studies with known figures.

use super::sample::json;
use crate::AnyResults;
use crate::echo::{Protocol, Shape};
use crate::json::{Endpoint, JsonAnalysis, JsonResults, Purpose, report};
use crate::load::Outcome;
use crate::report::Report;
use crate::stack::Stack;

fn analyse(results: &JsonResults) -> Report {
    report(&JsonAnalysis::of(results))
}

/// Returns the text in one line, with plain spaces.
fn text(results: &JsonResults) -> String {
    let text = analyse(results).text.replace('\u{a0}', " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn check(words: &[&str]) {
    let text = text(&json::quick());
    for words in words {
        assert!(text.contains(words), "it does not say `{words}`: {text}");
    }
}

#[test]
fn answer_states_the_factor() {
    check(&[
        "With 5 000 strings of 20 letters, a JSON API over HTTP/1.1 takes 2.0 × (2.0–2.0) as long as gRPC",
        "with a small person, a JSON API over HTTP/1.1 takes as long as gRPC",
    ]);
}

#[test]
fn difference_is_explained_step_by_step() {
    check(&[
        "JSON over HTTP/1.1 takes 503 µs longer than gRPC: +252 µs for the format (JSON instead of Protobuf), +50.2 µs \
         for a REST path instead of the gRPC method’s path and +201 µs for HTTP/1.1 instead of HTTP/2",
        "Its bodies have 10 % more bytes.",
    ]);
}

#[test]
fn each_question_has_its_answer() {
    check(&[
        "JSON is within 10 % of gRPC in 1 case: JSON over HTTP/1.1 with a small person.",
        // One in a hundred, in three windows of 21 endpoints.
        "63 of 6 300 calls took more than 10 times the median of their variant.",
        "MessagePack takes 0.80 × (0.80–0.80) as long as JSON over the same protocol",
        "the time of a JSON call relative to our server, which transcodes itself, is 5.0 × (5.0–5.0) through \
         grpc-gateway and 5.0 × (5.0–5.0) through grpc-gateway:inside",
        "a gateway in its own process takes 1.000 × (1.000–1.000: no difference) as long as one inside the server",
        "the rate of transcoded JSON calls at our server is 2.0 × (2.0–2.0) that of axum (JSON over HTTP/1.1)",
        "the rate of transcoded JSON calls at our server with views is 4.0 × (4.0–4.0) that of axum (JSON over \
         HTTP/1.1)",
        "With a small person, the rate with views of the received bytes relative to prost’s messages is 2.0 × \
         (2.0–2.0) for gRPC",
        "a server that also serves JSON on the same port handles 1.000 × (1.000–1.000: no difference) as many gRPC \
         calls as one that does not",
        "(5 ms added round trip)",
        "and the next 100 calls take",
    ]);
}

#[test]
fn all_spikes_are_counted_beyond_the_kept_ones() {
    let text = text(&json::with_spikes(30));
    assert!(
        text.contains("1 890 of 6 300 calls took more than 10 times the median of their variant."),
        "{text}"
    );
}

/// Returns results in which the round determines how lone calls of JSON over HTTP/1.1 compare.
fn with_noise() -> JsonResults {
    let mut results = json::quick();
    for result in &mut results.windows {
        let window = result.window.clone();
        let is_json = window.endpoint == Endpoint::ours(Protocol::JsonHttp1);
        let latency = result.measured_mut().and_then(|load| load.latency_ns.as_mut());
        if let Some(latency) = latency.filter(|_| is_json && window.round % 2 == 0) {
            latency.p50 *= 4;
        }
    }
    results
}

#[test]
fn inconclusive_ratio_is_not_reported_as_difference() {
    let results = with_noise();
    let text = text(&results);
    let answer = text.split("The published comparison").next().unwrap();
    assert!(
        answer.starts_with("With 5 000 strings of 20 letters, no difference between a JSON API"),
        "{answer}"
    );
    assert!(answer.contains("with a small person, no difference between a JSON API"), "{answer}");
    let published = "for JSON over HTTP/1.1: 5.0 × (0.42–37: no difference is shown).";
    assert!(text.contains(published), "{text}");
    assert!(text.contains("A question mark means that no difference is shown."), "{text}");
    assert!(text.contains("than gRPC (no difference is shown):"), "{text}");
    let page = analyse(&results).page;
    assert!(page.contains("? 5.0 ×") && page.contains("(no difference is shown)"), "{page}");
}

#[test]
fn network_bound_variants_count_as_equal() {
    let mut results = json::quick();
    for result in &mut results.windows {
        let window = result.window.clone();
        let is_meant = window.case.round_trip_ns == 5_000_000 && window.endpoint.stack == Stack::ours();
        if let Some(latency) =
            result.measured_mut().and_then(|load| load.latency_ns.as_mut()).filter(|_| is_meant)
        {
            // Neither is always faster.
            let is_first = (window.endpoint.protocol == Protocol::Grpc) == (window.round % 2 == 0);
            latency.p50 = if is_first { 5_500_000 } else { 5_510_000 };
        }
    }
    let text = text(&results);
    let words = "JSON is within 10 % of gRPC in 2 cases: JSON over HTTP/1.1 with a small person and JSON over HTTP/1.1 \
                 with 5 000 strings of 20 letters over a network (5 ms added round trip).";
    assert!(text.contains(words), "it does not say `{words}`: {text}");
}

#[test]
fn doubts_are_reported_with_figures() {
    let mut results = json::quick();
    results.machine.load_average = 64.0;
    let condensed: serde_json::Value = serde_json::from_str(&analyse(&results).condensed.unwrap()).unwrap();
    let doubts = condensed["doubts"].as_array().unwrap();
    assert!(
        doubts.iter().any(|doubt| doubt.as_str().unwrap().contains("Other programs were running")),
        "{doubts:?}"
    );
}

#[test]
fn failed_windows_are_reported_without_figures() {
    let mut results = json::quick();
    for window in &mut results.windows {
        if window.window.endpoint.stack.name() == "axum" {
            window.outcome = Outcome::Failed("it fell over".to_owned());
            (window.usage, window.not_valid) = (None, None);
        }
    }
    let analysis = analyse(&results);
    let doubts: Vec<String> = analysis.doubts.iter().map(ToString::to_string).collect();
    let doubts = doubts.join(" ");
    assert!(doubts.contains("Not measured in") && doubts.contains("it fell over"), "{doubts}");
    assert!(doubts.contains("spring: no Java here"), "{doubts}");
    let text = text(&results);
    assert!(!text.contains("that of axum"), "{text}");
    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
}

#[test]
fn noise_of_a_cell_affects_only_its_figures() {
    let mut results = json::quick();
    // Every other duplicate window of the person's rates differs from the original.
    for result in &mut results.windows {
        let window = result.window.clone();
        let is_bad =
            window.is_duplicate && window.purpose == Purpose::Rate && window.case.shape == Shape::Person;
        if let Some(load) = result.measured_mut().filter(|_| is_bad && window.round % 2 == 0) {
            load.rate_per_s *= 100.0;
        }
    }
    let analysis = analyse(&results);
    let doubts: Vec<String> = analysis.doubts.iter().map(ToString::to_string).collect();
    let [doubt] = doubts.iter().filter(|doubt| doubt.contains("noise floor")).collect::<Vec<_>>()[..] else {
        panic!("{doubts:?}")
    };
    assert!(doubt.starts_with("As many calls as the server takes, a small person: "), "{doubt}");
    let condensed: serde_json::Value = serde_json::from_str(&analysis.condensed.unwrap()).unwrap();
    let verdict = |message: &str, figures: &str, compared: &str| {
        let cells = condensed["cells"].as_array().unwrap();
        let is_meant = |cell: &&serde_json::Value| {
            (&cell["server"], &cell["protocol"]) == (&"axum".into(), &"grpc".into())
        };
        let mut of_message = cells.iter().filter(is_meant).filter(|cell| cell["message"] == message);
        of_message.next().unwrap()[figures][compared]["verdict"].clone()
    };
    assert_eq!(verdict("person", "rate", "ours_over_it"), "cannot tell");
    assert_eq!(verdict("strings:5000x20", "rate", "ours_over_it"), "faster");
    assert_eq!(verdict("person", "latency", "times_grpc"), "slower");
    let noise = condensed["noise"].as_array().unwrap();
    assert_eq!((noise.len(), &noise[0]["pairs"]), (3 + 2, &6.into()));
}

#[test]
fn empty_json_study_is_reported() {
    let mut results = json::quick();
    results.windows.clear();
    let analysis = analyse(&results);
    assert_eq!(analysis.text, "");
    assert!(analysis.page.contains("Nothing was measured."));
}

#[test]
fn results_survive_their_json_and_become_rows() {
    let results = json::quick();
    let restored: JsonResults = serde_json::from_str(&serde_json::to_string(&results).unwrap()).unwrap();
    // Figures lose their last digits in JSON.
    assert_eq!(restored.windows.len(), results.windows.len());
    assert!(restored.windows.iter().zip(&results.windows).all(|(one, other)| one.window == other.window));
    assert_eq!(text(&restored), text(&results));
    let csv = analyse(&results).csv;
    assert_eq!(csv.lines().count(), 1 + results.windows.len());
    let header = csv.lines().next().unwrap();
    assert!(header.starts_with("server,protocol,message,round_trip_ns"), "{header}");
    let condensed = AnyResults::Json(Box::new(results)).analyse().condensed.unwrap();
    let condensed: serde_json::Value = serde_json::from_str(&condensed).unwrap();
    let cells = condensed["cells"].as_array().unwrap();
    let axum = cells.iter().find(|cell| {
        cell["server"] == "axum" && cell["protocol"] == "json-http1" && cell["rate"].is_object()
    });
    assert_eq!(axum.unwrap()["rate"]["ours_over_it"]["verdict"], "faster");
}
