//! Protobuf against JSON: conversions of a small object.

use thalweg_measure::figures::{grouped, time, times};
use thalweg_measure::statistics::median;
use thalweg_protobuf::dissect::{Limits, Span, dissect};

use super::claim::Claim;
use super::evidence::Evidence;
use super::grid::Table;
use super::judgement::{Figure, Judgement, Verdict, is_near};
use super::original::{Extent, Flaw, Original, Run};
use crate::codec::CodecResults;
use crate::codec::line::Operation;
use crate::report::grid::Field;

pub(super) const ORIGINAL: Original = Original {
    title: "Protobuf against JSON",
    source: "conversions of a small object by protobuf-java and by Jackson with Blackbird, as published on the JVM",
    method: &[
        "A person with a name and an age, and without its other fields: to bytes and back.",
        "10 to 10⁷ conversions in a plain loop after 50 to warm up; the clock before and after each loop.",
    ],
    claims: CLAIMS,
    flaws: FLAWS,
    runs,
    tables,
};

const RUN: &str = "codec";
const DATA: &str = "person-sparse";
const PROTOBUF: &str = "protobuf-java";
const JACKSON: &str = "jackson-blackbird";
/// The message as Protobuf.
const AS_PROTOBUF: &[u8] = b"\x0a\x0dpolar penguin\x10\x14";
/// What was published of ten million conversions.
const FACTOR: f64 = 7.0;
const MOST: u64 = 10_000_000;

fn runs(extent: Extent) -> Vec<Run> {
    let words = match extent {
        Extent::Quick => {
            "lab codec --quick --against jvm --messages person-sparse --codecs prost,serde_json --no-calls \
             --no-instructions --budget 20s"
        }
        Extent::Whole => {
            "lab codec --against jvm --messages person-sparse,samples --no-calls --no-instructions --budget 4min"
        }
    };
    vec![Run::new(
        RUN,
        "protobuf-java and Jackson, in plain loops as published and by JMH, and codecs of Rust",
        words,
    )]
}

const CLAIMS: &[Claim] = &[
    Claim {
        id: "factor",
        text: "At ten million conversions Protobuf is about seven times as fast as JSON.",
        published: "about 7 × at 10⁷",
        judge: factor,
    },
    Claim {
        id: "bytes",
        text: "The person has 17 bytes as Protobuf and 63 as JSON.",
        published: "17 and 63 B",
        judge: bytes,
    },
];

const FLAWS: &[Flaw] = &[
    Flaw {
        what: "50 conversions to warm up",
        instead: "The compiler makes fast code of a method after some ten thousand calls. Loops of up to 10⁴ \
                  conversions time the interpreter and the compiler. Here JMH warms each codec up for seconds, in a \
                  process of its own, beside the plain loops.",
    },
    Flaw {
        what: "Nulls that are written out",
        instead: "Of the 63 bytes 30 say that two fields are not there, which Jackson leaves out if it is told to \
                  (`JsonInclude.Include.NON_NULL`). Protobuf never writes them.",
    },
    Flaw {
        what: "One message",
        instead: "A factor is of a message: strings cost either format the same, numbers and small messages do not. \
                  The codec study measures seven, on the JVM and in Rust.",
    },
];

/// Nanoseconds of a conversion in a plain loop of so many; the median of the processes.
fn looped(results: &CodecResults, codec: &str, conversions: u64) -> Option<f64> {
    let loops = results.peers.iter().flat_map(|peer| &peer.loops);
    let of =
        loops.filter(|it| it.line.codec == codec && it.line.data == DATA && it.conversions == conversions);
    median(of.map(|it| it.elapsed_ns as f64 / it.conversions as f64))
}

/// The same by JMH.
fn by_jmh(results: &CodecResults, codec: &str, data: &str) -> Option<f64> {
    let lines = results.peers.iter().flat_map(|peer| &peer.lines);
    let mut of = lines.filter(|it| {
        it.line.codec == codec && it.line.data == data && it.line.operation == Operation::RoundTrip
    });
    median(of.next()?.ns_per_conversion.iter().copied())
}

fn without_jvm(results: &CodecResults) -> String {
    let left_out = results.left_out.first().map(|it| format!("{}: {}", it.what, it.reason));
    left_out.unwrap_or_else(|| "nothing was measured on the JVM".to_owned())
}

fn factor(evidence: &Evidence) -> Result<Judgement, String> {
    let results = evidence.codec(RUN)?;
    let of = |codec| looped(results, codec, MOST).ok_or_else(|| without_jvm(results));
    let (protobuf, json) = (of(PROTOBUF)?, of(JACKSON)?);
    let ratio = json / protobuf;
    let jmh = by_jmh(results, JACKSON, DATA).zip(by_jmh(results, PROTOBUF, DATA));
    let mut figures = vec![
        Figure::time("protobuf-java, a round trip of 10⁷", protobuf),
        Figure::time("jackson-blackbird, a round trip of 10⁷", json),
        Figure::ratio("jackson-blackbird ÷ protobuf-java, 10⁷", ratio),
    ];
    let by = jmh.map(|(json, protobuf)| {
        figures.push(Figure::ratio("jackson-blackbird ÷ protobuf-java, JMH", json / protobuf));
        format!(
            " By JMH, whose loops are warm, it is {} ({} and {}).",
            times(json / protobuf),
            time(json),
            time(protobuf)
        )
    });
    let cause = format!(
        "Most of JSON’s time is text: names are written, read and matched, numbers are spelt, and nulls have names, \
         too.{}",
        by.unwrap_or_default()
    );
    let said = format!("{} ({} and {} each)", times(ratio), time(json), time(protobuf));
    Ok(Judgement { verdict: Verdict::of(ratio > 1.0, is_near(ratio, FACTOR)), ours: said, cause, figures })
}

fn bytes(evidence: &Evidence) -> Result<Judgement, String> {
    let results = evidence.codec(RUN)?;
    let of = |codec: &str| {
        let lines = results.peers.iter().flat_map(|peer| &peer.lines);
        let mut of = lines.filter(|it| it.line.codec == codec && it.line.data == DATA);
        of.next().map(|it| it.bytes)
    };
    let (protobuf, json) = of(PROTOBUF).zip(of(JACKSON)).ok_or_else(|| without_jvm(results))?;
    let is_same = (protobuf - 17.0).abs() < 0.5 && (json - 63.0).abs() < 0.5;
    let nulls = r#","hobbies":null,"address":null"#.len();
    let cause = format!(
        "Protobuf writes a byte for each field’s number and type, a byte of length, the 13 letters, and the age in a \
         byte. JSON writes the names of four fields; {nulls} bytes are of the two that are null."
    );
    let figures = vec![Figure::bytes("protobuf-java", protobuf), Figure::bytes("jackson-blackbird", json)];
    let said = format!("{} and {} B", grouped(protobuf), grouped(json));
    Ok(Judgement { verdict: Verdict::of(protobuf < json, is_same), ours: said, cause, figures })
}

fn tables(evidence: &Evidence) -> Vec<Table> {
    let Ok(results) = evidence.codec(RUN) else { return Vec::new() };
    vec![loops(results), jmh(results), of_bytes()]
}

/// A round trip by the number of conversions in its loop.
fn loops(results: &CodecResults) -> Table {
    let mut table = Table::new(
        "Plain loops",
        "A round trip, object to bytes to object: the time of a whole loop by the number of conversions in it, on the \
         JVM, 50 conversions before the first and each loop behind the shorter ones.",
        &[
            "Conversions",
            "protobuf-java, each",
            "jackson-blackbird, each",
            "protobuf-java, all",
            "jackson-blackbird, all",
            "JSON ÷ Protobuf",
        ],
    );
    let first = looped(results, PROTOBUF, 10).zip(looped(results, PROTOBUF, MOST));
    if let Some((few, most)) = first {
        let compiled = format!(
            " Each of the first ten of protobuf-java takes {} as long as each of ten million: their code is not \
             compiled yet.",
            times(few / most)
        );
        table.about.push_str(&compiled);
    }
    let mut counts: Vec<u64> =
        results.peers.iter().flat_map(|peer| &peer.loops).map(|it| it.conversions).collect();
    counts.sort_unstable();
    counts.dedup();
    for count in counts {
        let [protobuf, json] = [PROTOBUF, JACKSON].map(|codec| looped(results, codec, count));
        let all = |each: Option<f64>| Field::figure(each.map(|each| each * count as f64), time);
        table.rows.push(vec![
            Field::figure(Some(count as f64), grouped),
            Field::figure(protobuf, time),
            Field::figure(json, time),
            all(protobuf),
            all(json),
            Field::figure(json.zip(protobuf).map(|(json, protobuf)| json / protobuf), times),
        ]);
    }
    table
}

fn jmh(results: &CodecResults) -> Table {
    let mut table = Table::new(
        "By JMH, and in Rust",
        "A round trip in code that is warm: on the JVM by JMH; in Rust the longest step of the codec study.",
        &[
            "Message",
            "protobuf-java",
            "jackson-blackbird",
            "JSON ÷ Protobuf",
            "prost",
            "serde_json",
            "JSON ÷ Protobuf in Rust",
        ],
    );
    for data in &results.data {
        let [protobuf, json] = [PROTOBUF, JACKSON].map(|codec| by_jmh(results, codec, &data.name));
        let [prost, serde] = ["prost", "serde_json"].map(|codec| in_rust(results, codec, &data.name));
        let ratio = |json: Option<f64>, protobuf: Option<f64>| {
            Field::figure(json.zip(protobuf).map(|(json, protobuf)| json / protobuf), times)
        };
        table.rows.push(vec![
            Field::words(&data.name),
            Field::figure(protobuf, time),
            Field::figure(json, time),
            ratio(json, protobuf),
            Field::figure(prost, time),
            Field::figure(serde, time),
            ratio(serde, prost),
        ]);
    }
    table
}

/// Nanoseconds of a round trip in the longest step that was measured.
fn in_rust(results: &CodecResults, codec: &str, data: &str) -> Option<f64> {
    let is_of = |step: &&crate::codec::tables::Step| {
        step.line.codec == codec
            && step.line.data == data
            && step.line.operation == Operation::RoundTrip
            && !step.again
    };
    let step = results.steps.iter().filter(is_of).max_by_key(|step| step.conversions)?;
    median(step.elapsed_ns.iter().map(|&ns| ns as f64 / step.conversions as f64))
}

/// What each byte of both is.
fn of_bytes() -> Table {
    let mut table = Table::new(
        "Byte by byte",
        "The same person as Protobuf and as JSON.",
        &["Format", "Bytes", "How many", "What they are"],
    );
    let mut row = |format: &str, bytes: String, count: usize, what: &str| {
        let count = Field::figure(Some(count as f64), grouped);
        table.rows.push(vec![Field::words(format), Field::words(bytes), count, Field::words(what)]);
    };
    let hex = |span: Span| {
        AS_PROTOBUF[span.start..span.end]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let message = dissect(AS_PROTOBUF, Span::all(AS_PROTOBUF), None, &Limits::default());
    for (record, name) in message.records.iter().zip(["name", "age"]) {
        let (tag, end) = (record.tag.span, record.span().end);
        let number = record.tag.number();
        row(
            "Protobuf",
            hex(tag),
            tag.end - tag.start,
            &format!("field {number} ({name}), and how its value is written"),
        );
        let value = Span { start: tag.end, end };
        if name == "name" {
            let letters = Span { start: tag.end + 1, end };
            row("Protobuf", hex(Span { start: tag.end, end: tag.end + 1 }), 1, "how long it is: 13");
            row("Protobuf", hex(letters), letters.end - letters.start, "polar penguin");
        } else {
            row("Protobuf", hex(value), value.end - value.start, "20");
        }
    }
    for (part, what) in [
        (r#"{"name":"#, "an object begins, and the name of the first field"),
        (r#""polar penguin""#, "its value in quotes"),
        (r#","age":"#, "the name of the second"),
        ("20", "its value in digits"),
        (r#","hobbies":null"#, "a field that is not there"),
        (r#","address":null"#, "another one"),
        ("}", "the object ends"),
    ] {
        row("JSON", part.to_owned(), part.len(), what);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const AS_JSON: &str = r#"{"name":"polar penguin","age":20,"hobbies":null,"address":null}"#;

    #[test]
    fn every_byte_is_accounted_for() {
        let of = |format: &str| -> f64 {
            let table = of_bytes();
            let rows = table.rows.iter().filter(|row| row[0].text == format);
            rows.filter_map(|row| row[2].value).sum()
        };
        assert!((of("Protobuf") - AS_PROTOBUF.len() as f64).abs() < 0.1);
        assert!((of("JSON") - AS_JSON.len() as f64).abs() < 0.1);
        assert_eq!((AS_PROTOBUF.len(), AS_JSON.len()), (17, 63));
        let json: String = of_bytes()
            .rows
            .iter()
            .filter(|row| row[0].text == "JSON")
            .map(|row| row[1].text.clone())
            .collect();
        assert_eq!(json, AS_JSON);
    }
}
