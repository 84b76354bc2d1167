//! Findings of a codec study.

use std::fmt;

use thalweg_measure::figures::{percent, time, times};
use thalweg_measure::statistics::median;

use super::analyse::{CodecFigures, LineFigures};
use super::line::{Decodes, Format, Operation};
use super::results::CodecResults;
use super::span::{ComparedFigure, Span};
use super::tables::CodecInfo;
use crate::findings::{Finding, collect_findings};

/// Published factor by which protobuf-java was faster than Jackson.
const PUBLISHED_RATIO: f64 = 7.0;
/// Formats that count as JSON.
pub(super) const JSON: [Format; 2] = [Format::Json, Format::ProtoJson];
const ROUND_TRIP: ComparedFigure = ComparedFigure::Time(Operation::RoundTrip);
const RAW: ComparedFigure = ComparedFigure::Bytes(|size| size.raw);

/// Results and figures, from which findings are derived.
#[derive(Clone, Copy)]
pub(super) struct Findings<'a> {
    results: &'a CodecResults,
    analysis: &'a CodecFigures,
    /// First codecs of Protobuf and of JSON, which represent their formats.
    pair: Option<(&'a str, &'a str)>,
}

impl<'a> Findings<'a> {
    pub(super) fn of(results: &'a CodecResults, analysis: &'a CodecFigures) -> Self {
        let first = |formats: &[Format]| results.first_of(formats).map(|codec| codec.name.as_str());
        let json = || first(&[Format::Json]).or_else(|| first(&JSON));
        Self { results, analysis, pair: first(&[Format::Protobuf]).zip(json()) }
    }

    /// Returns the answer in a sentence.
    pub(super) fn answer(self) -> Option<String> {
        let (protobuf, json) = self.pair?;
        let (time, bytes) = (self.span(ROUND_TRIP, json, protobuf)?, self.span(RAW, json, protobuf)?);
        let messages = match self.results.data.as_slice() {
            [data] => format!("{} takes", data.name),
            _ => "messages take".to_owned(),
        };
        let (time, bytes) = (time.plain(), bytes.plain());
        Some(format!("As JSON, {messages} {time} the time of Protobuf, and {bytes} the bytes"))
    }

    /// Returns the findings, most important first.
    pub(super) fn all(self) -> Vec<Finding> {
        collect_findings([
            ("Where Protobuf wins", self.where_it_wins()),
            ("Where it does not", self.pair.and_then(|_| self.where_it_does_not())),
            ("Bytes", self.bytes()),
            ("Share of a whole call", self.of_a_call()),
            ("ProtoJSON", self.proto_json()),
            ("MessagePack", self.message_pack()),
            ("Type at run time", self.at_run_time()),
            ("Borrowing", self.borrowing()),
            ("The first conversions", self.first_conversions()),
            ("On the JVM", self.on_the_jvm()),
            ("Noise", self.noise()),
        ])
    }

    /// Returns the range of ratios between codec `one` and codec `other`.
    fn span(self, figure: ComparedFigure, one: &str, other: &str) -> Option<Span<'a>> {
        Span::of(figure.ratios((self.results, self.analysis), one, other))
    }

    /// Returns a note if one codec owns what it decodes and the other borrows it.
    fn ownership_note(self, one: &str, other: &str) -> Option<String> {
        let decodes = |name: &str| self.results.codec(name)?.decodes;
        let (borrows, owns) = match (decodes(one)?, decodes(other)?) {
            (Decodes::Borrowed, Decodes::Owned) => (one, other),
            (Decodes::Owned, Decodes::Borrowed) => (other, one),
            _ => return None,
        };
        Some(format!("{borrows} borrows what it decodes, and each field is read; {owns} owns it"))
    }

    /// Returns that note as a sentence to append, or nothing.
    fn ownership_sentence(self, one: &str, other: &str) -> String {
        self.ownership_note(one, other).map(|it| format!(" They differ: {it}.")).unwrap_or_default()
    }

    fn where_it_wins(self) -> Option<String> {
        let (protobuf, json) = self.pair?;
        let mut text = String::new();
        for operation in Operation::ALL {
            let Span { least, most } = self.span(ComparedFigure::Time(operation), json, protobuf)?;
            let (what, of_what) = match operation {
                Operation::Encode => (format!("{json} takes"), format!(" {protobuf}’s time to encode")),
                Operation::Decode => (" To decode, it takes".to_owned(), " for".to_owned()),
                Operation::RoundTrip => (" For a round trip,".to_owned(), " for".to_owned()),
            };
            let (longest, shortest) = (times(most.0), times(least.0));
            let rest = match self.results.data.len() {
                1 => format!(" {protobuf}’s time"),
                _ => format!("{of_what} {}, and {shortest} for {}", most.1, least.1),
            };
            text += &[&what, " ", &longest, &rest, "."].concat();
        }
        Some(text + &self.ownership_sentence(protobuf, json))
    }

    /// Matches formats by message and operation, starting with Protobuf's worst. Owned decoding is matched with owned,
    /// and borrowed with borrowed.
    ///
    /// `only_static` restricts it to codecs that know the type at compile time.
    fn matches(self, others: &[Format], only_static: bool) -> Vec<FormatMatch<'a>> {
        let takes_part = |line: &LineFigures| !(only_static && line.dynamic);
        let at = |(data, operation): (&str, Operation)| {
            let fastest = self.analysis.fastest_alike(data, operation, others, takes_part).into_iter();
            fastest.map(|(protobuf, other)| FormatMatch { ratio: other.ns / protobuf.ns, protobuf, other })
        };
        let names = self.results.data.iter().map(|data| data.name.as_str());
        let cells = names.flat_map(|data| Operation::ALL.map(|operation| (data, operation)));
        let mut matches: Vec<FormatMatch<'_>> = cells.flat_map(at).collect();
        matches.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
        matches
    }

    /// Describes where Protobuf is not the fastest, beyond the noise or not.
    fn where_it_does_not(self) -> Option<String> {
        let floor = self.analysis.noise.as_ref().map_or(1.0, |noise| noise.floor);
        let faster = |it: &&FormatMatch<'_>| it.ratio * floor < 1.0;
        let not_slower = |it: &&FormatMatch<'_>| it.ratio <= floor;
        let json = self.matches(&JSON, false);
        let nearest = json.first()?;
        let known = self.matches(&JSON, true);
        let message_pack = self.matches(&[Format::MessagePack], false);
        let is_hidden = known.iter().filter(not_slower).count() > json.iter().filter(not_slower).count();
        let sentences = [
            (!not_slower(&nearest)).then(|| {
                format!(
                    "The fastest JSON codec was slower than the fastest of Protobuf everywhere. The closest was \
                     {nearest}."
                )
            }),
            listed("Fastest against fastest, JSON took less time at", json.iter().filter(faster)),
            listed(
                "JSON was not slower beyond the noise at",
                json.iter().filter(not_slower).filter(|it| !faster(it)),
            ),
            listed(
                "Among codecs that know the type at compile time, JSON was not slower beyond the noise at",
                known.iter().filter(not_slower).filter(|_| is_hidden),
            ),
            listed("MessagePack took less time at", message_pack.iter().filter(faster)),
            json.iter()
                .any(|it| it.protobuf.decodes.is_some())
                .then(|| "Owned results are compared with owned ones, borrowed with borrowed.".to_owned()),
        ];
        Some(sentences.into_iter().flatten().collect::<Vec<_>>().join(" "))
    }

    fn bytes(self) -> Option<String> {
        let (protobuf, json) = self.pair?;
        let range = |figure| self.span(figure, json, protobuf);
        let grows = |data: &&str| {
            self.results.size(data, protobuf).is_some_and(|size| size.gzip.min(size.zstd) > size.raw)
        };
        let names = self.results.data.iter().map(|data| data.name.as_str());
        let growing = match names.filter(grows).collect::<Vec<_>>().join(", ") {
            none if none.is_empty() => none,
            grown => format!(" Compression does not shrink Protobuf’s bytes of {grown}."),
        };
        Some(format!(
            "JSON is {} the bytes of Protobuf. With each message compressed separately, the gap is {} with gzip and \
             {} with zstd.{growing}",
            range(RAW)?,
            range(ComparedFigure::Bytes(|size| size.gzip))?,
            range(ComparedFigure::Bytes(|size| size.zstd))?
        ))
    }

    fn of_a_call(self) -> Option<String> {
        let shares = &self.analysis.shares;
        let range = |format: Format, is_lone: bool| {
            let of = shares.iter().filter(|it| it.format == format && (it.in_flight == 1) == is_lone);
            let span = Span::of(of.map(|it| (it.share(), it.data.as_str())).collect())?;
            Some(span.named(percent, percent))
        };
        let in_flight = shares.iter().map(|share| share.in_flight).max()?;
        let codec = |format| shares.iter().find(|it| it.format == format).map(|it| it.codec.as_str());
        let (protobuf, json) = (codec(Format::Protobuf)?, codec(Format::Json)?);
        Some(format!(
            "All four conversions make up {} of a lone echo call over a UNIX socket with {protobuf}, and {} with \
             {json}. With {in_flight} calls in flight, they make up {} and {} of both sides’ processor time.{}",
            range(Format::Protobuf, true)?,
            range(Format::Json, true)?,
            range(Format::Protobuf, false)?,
            range(Format::Json, false)?,
            self.ownership_sentence(protobuf, json)
        ))
    }

    fn message_pack(self) -> Option<String> {
        let (protobuf, json) = self.pair?;
        let codec = &self.results.first_of(&[Format::MessagePack])?.name;
        let unlike = [protobuf, json].map(|other| self.ownership_sentence(codec, other)).concat();
        Some(format!(
            "For a round trip, {codec} with names takes {} {protobuf}’s time and {} its bytes, and {} {json}’s time \
             and {} its bytes.{unlike}",
            self.span(ROUND_TRIP, codec, protobuf)?,
            self.span(RAW, codec, protobuf)?,
            self.span(ROUND_TRIP, codec, json)?,
            self.span(RAW, codec, json)?
        ))
    }

    /// Compares ProtoJSON codecs with the first of them, and that one with JSON of plain structs.
    fn proto_json(self) -> Option<String> {
        let first = self.results.first_of(&[Format::ProtoJson])?;
        let compare = |name: &str, other: &str| {
            let range = self.span(ROUND_TRIP, name, other)?;
            let unlike = self.ownership_note(name, other).map(|it| format!(" ({it})")).unwrap_or_default();
            Some(format!("{name} takes {range} the time of {other}{unlike}"))
        };
        let is_other = |codec: &&CodecInfo| codec.format == Format::ProtoJson && codec.name != first.name;
        let others = self.results.codecs.iter().filter(is_other);
        let json = self.results.first_of(&[Format::Json]).and_then(|json| compare(&first.name, &json.name));
        let compared = json.into_iter().chain(others.filter_map(|it| compare(&it.name, &first.name)));
        let compared = compared.collect::<Vec<_>>().join(", ");
        (!compared.is_empty()).then(|| format!("For a round trip, {compared}."))
    }

    /// Compares dynamic Protobuf codecs with each other, and with static ones: the first, and the first that decodes
    /// as the dynamic one does.
    fn at_run_time(self) -> Option<String> {
        let protobuf = |dynamic: bool| {
            let is_it = move |it: &&CodecInfo| it.format == Format::Protobuf && it.dynamic == dynamic;
            self.results.codecs.iter().filter(is_it)
        };
        let first = protobuf(true).next()?;
        let ours = first.name.as_str();
        let alike = protobuf(false).skip(1).find(|it| it.decodes.is_some() && it.decodes == first.decodes);
        let others = protobuf(false).take(1).chain(alike).chain(protobuf(true).skip(1));
        let compare = |codec: &CodecInfo| {
            let range =
                |operation| Some(self.span(ComparedFigure::Time(operation), &codec.name, ours)?.plain());
            Some(format!(
                "{} takes {} its time to encode and {} to decode{}",
                codec.name,
                range(Operation::Encode)?,
                range(Operation::Decode)?,
                codec.decodes.map(|decodes| format!(" ({decodes})")).unwrap_or_default()
            ))
        };
        let compared = others.filter_map(compare).collect::<Vec<_>>().join("; ");
        let decodes = first.decodes.map(|it| format!("; what it decodes is {it}")).unwrap_or_default();
        (!compared.is_empty()).then(|| {
            format!("{ours} knows a message’s type at run time only{decodes}. In comparison, {compared}.")
        })
    }

    fn borrowing(self) -> Option<String> {
        let has = |name: &str| self.results.codecs.iter().any(|codec| codec.name == name);
        let are_there = has("buffa") && has("buffa-view");
        let decode = ComparedFigure::Time(Operation::Decode);
        let range = self.span(decode, "buffa", "buffa-view").filter(|_| are_there)?;
        Some(format!(
            "A view leaves strings in the received bytes: decoding buffa’s owned message takes {range} the time of \
             decoding its view and reading each field."
        ))
    }

    /// Compares ten conversions with the largest number of them.
    fn first_conversions(self) -> Option<String> {
        let lines = &self.analysis.lines;
        let slower = |line: &LineFigures| {
            let (first, last) = (line.steps.first()?, line.steps.last()?);
            (first.conversions < last.conversions).then_some(first.ns / last.ns)
        };
        let ratios = || lines.iter().filter_map(slower);
        let first = lines.iter().filter_map(|line| line.steps.first()).map(|step| step.conversions).min()?;
        Some(format!(
            "After the warm-up, a conversion among the first {first} took {} as long as one in the longest step \
             (median line), and {} as long in the worst line.",
            times(median(ratios())?),
            times(ratios().reduce(f64::max)?)
        ))
    }

    fn on_the_jvm(self) -> Option<String> {
        let peer = self.results.peers.first()?;
        let of = |formats: &[Format]| {
            peer.codecs.iter().find(|codec| formats.contains(&codec.format)).map(|it| &*it.name)
        };
        let (protobuf, json) = (of(&[Format::Protobuf])?, of(&JSON)?);
        let ratios = ROUND_TRIP.ratios((self.results, self.analysis), json, protobuf);
        let reached: Vec<&str> =
            ratios.iter().filter(|(ratio, _)| *ratio >= PUBLISHED_RATIO).map(|(_, data)| *data).collect();
        let reached = match reached.as_slice() {
            [] => "by none".to_owned(),
            reached => format!("by {} alone", reached.join(", ")),
        };
        let ours = self.pair.and_then(|(ours, _)| {
            let (range, unlike) =
                (self.span(ROUND_TRIP, protobuf, ours)?, self.ownership_sentence(protobuf, ours));
            Some(format!(" {protobuf} takes {} the time of {ours} here.{unlike}", range.plain()))
        });
        Some(format!(
            "{json} takes {} the time of {protobuf} for a round trip: the published factor of {PUBLISHED_RATIO} for \
             ten million of them is reached {reached}.{}",
            Span::of(ratios)?,
            ours.unwrap_or_default()
        ))
    }

    fn noise(self) -> Option<String> {
        let noise = self.analysis.noise.as_ref()?;
        Some(format!(
            "{} lines were measured twice: the two results differed by {} (median) and at most {}, which is the noise \
             floor. Within a line, the middle half of the rounds lay within {}.",
            noise.doubles,
            percent(noise.typical - 1.0),
            percent(noise.floor - 1.0),
            percent(noise.spread)
        ))
    }
}

/// The fastest Protobuf codec for a message and operation, and the fastest of another format.
struct FormatMatch<'a> {
    /// Time of the other ÷ time of Protobuf.
    ratio: f64,
    protobuf: &'a LineFigures,
    other: &'a LineFigures,
}

impl fmt::Display for FormatMatch<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ratio, protobuf, other } = self;
        let with = |line: &LineFigures| format!("{} with {}", time(line.ns), line.line.codec);
        let ownership = if protobuf.decodes == Some(Decodes::Borrowed) { ", borrowed" } else { "" };
        let (data, operation) = (&protobuf.line.data, protobuf.line.operation);
        write!(f, "{data} {operation}{ownership}: {}, {} ({})", with(other), with(protobuf), times(*ratio))
    }
}

/// Returns a sentence that lists the first items and the number of the others.
fn listed(introduction: &str, items: impl Iterator<Item = impl ToString>) -> Option<String> {
    const LISTED_MAX: usize = 3;
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    let (shown, more) = items.split_at(items.len().min(LISTED_MAX));
    let more = if more.is_empty() { String::new() } else { format!("; and {} more", more.len()) };
    (!shown.is_empty()).then(|| format!("{introduction} {}{more}.", shown.join("; ")))
}
