//! What a codec study found, and what speaks against its figures.

use std::fmt;

use thalweg_measure::figures::{percent, ratio as number, time, times as factor};
use thalweg_measure::statistics::median;

use super::analyse::{Analysis, LineFigures, Share};
use super::line::{Decodes, Format, Operation};
use super::results::CodecResults;
use super::tables::{CodecInfo, Size};
use crate::findings::{Doubt, Finding, found};

/// What protobuf-java was once said to be faster than Jackson by.
const PUBLISHED_RATIO: f64 = 7.0;
/// Formats that are read as JSON.
const JSON: [Format; 2] = [Format::Json, Format::ProtoJson];
/// Doubles that differ by more than this say that the machine was busy.
const FLOOR_HIGH: f64 = 1.25;
/// Iterations of a peer that differ by more than this share of their median are not of one speed.
const UNSTEADY: f64 = 0.3;
/// From this load on other programs took their share.
const LOAD_HIGH: f64 = 1.0;

/// The first codecs of Protobuf and of JSON: those that stand for their formats.
struct Pair<'a> {
    protobuf: &'a str,
    json: &'a str,
}

/// A ratio, and whose it is.
struct Of<'a> {
    ratio: f64,
    data: &'a str,
}

/// The study in a sentence.
pub(crate) fn answer(results: &CodecResults, analysis: &Analysis) -> Option<String> {
    let pair = pair(results)?;
    let (least, most) = ends(ratios(results, analysis, &pair, Operation::RoundTrip))?;
    let (lean, fat) = ends(size_ratios(results, &pair, |size| size.raw))?;
    if results.data.len() == 1 {
        let (slower, larger) = (factor(most.ratio), factor(fat.ratio));
        return Some(format!(
            "As JSON, {} takes {slower} the time of Protobuf, and {larger} the bytes",
            most.data
        ));
    }
    Some(format!(
        "As JSON, messages take {} to {} the time of Protobuf, and {} to {} the bytes",
        number(least.ratio),
        factor(most.ratio),
        number(lean.ratio),
        factor(fat.ratio)
    ))
}

/// What was found, most wanted first.
pub(crate) fn findings(results: &CodecResults, analysis: &Analysis) -> Vec<Finding> {
    let pair = &pair(results);
    let of_pair = |text: &dyn Fn(&Pair<'_>) -> Option<String>| pair.as_ref().and_then(text);
    found([
        ("Where Protobuf wins", of_pair(&|pair| where_it_wins(results, analysis, pair))),
        ("Where it does not", of_pair(&|_| where_it_does_not(results, analysis))),
        ("Bytes", of_pair(&|pair| bytes(results, pair))),
        ("Share of a whole call", of_a_call(results, analysis)),
        ("ProtoJSON", proto_json(results, analysis)),
        ("MessagePack", message_pack(results, analysis)),
        ("Type at run time", at_run_time(results, analysis)),
        ("Borrowing", borrowing(results, analysis)),
        ("The first conversions", first_conversions(analysis)),
        ("On the JVM", on_the_jvm(results, analysis)),
        ("Noise", noise(analysis)),
    ])
}

/// What to know before the figures are used.
pub(crate) fn doubts(results: &CodecResults, analysis: &Analysis) -> Vec<Doubt> {
    let mut doubts = Vec::new();
    let (machine, build) = (&results.machine, &results.versions.build);
    if build == "debug" {
        doubts.push(Doubt::build(build));
    }
    if machine.load_average > LOAD_HIGH {
        doubts.push(Doubt::busy(machine.load_average, machine.cores));
    }
    if let Some(noise) = analysis.noise.as_ref().filter(|noise| noise.floor > FLOOR_HIGH) {
        doubts.push(Doubt::noisy(None, noise.floor));
    }
    doubts.extend(results.disturbance().map(|disturbance| Doubt(disturbance.to_string())));
    if !results.is_complete() {
        doubts.push(Doubt::cut_short(results.measured(), results.planned));
    }
    let of_peers = || analysis.lines.iter().filter(|line| line.of_peer);
    let unsteady = of_peers().filter(|line| line.range > UNSTEADY).count();
    if unsteady > 0 {
        doubts.push(Doubt(format!(
            "{unsteady} of {} results of other programs are unstable: iterations differ by more than {}.",
            of_peers().count(),
            percent(UNSTEADY)
        )));
    }
    if results.data.len() == 1 && results.settings.seed.is_none() {
        let text =
            "The message's type is known at run time only, so codecs with generated code are not measured.";
        doubts.push(Doubt(text.to_owned()));
    }
    doubts.extend(results.left_out.iter().map(|it| Doubt::left_out(&it.what, &it.reason)));
    doubts
}

fn pair(results: &CodecResults) -> Option<Pair<'_>> {
    let first = |formats: &[Format]| results.first_of(formats).map(|codec| codec.name.as_str());
    Some(Pair {
        protobuf: first(&[Format::Protobuf])?,
        json: first(&[Format::Json]).or_else(|| first(&JSON))?,
    })
}

/// What to know where one of two codecs owns what it decodes, and the other borrows it.
fn unlike(results: &CodecResults, one: &str, other: &str) -> Option<String> {
    let decodes = |name: &str| results.codec(name)?.decodes;
    let (borrows, owns) = match (decodes(one)?, decodes(other)?) {
        (Decodes::Borrowed, Decodes::Owned) => (one, other),
        (Decodes::Owned, Decodes::Borrowed) => (other, one),
        _ => return None,
    };
    Some(format!("{borrows} borrows what it decodes, and each field is read; {owns} owns it"))
}

/// [`unlike`] as a sentence behind others, or nothing.
fn unlike_sentence(results: &CodecResults, one: &str, other: &str) -> String {
    unlike(results, one, other).map(|it| format!(" Unlike each other, {it}.")).unwrap_or_default()
}

/// JSON's time ÷ Protobuf's, message by message.
fn ratios<'a>(
    results: &'a CodecResults,
    analysis: &Analysis,
    pair: &Pair<'_>,
    operation: Operation,
) -> Vec<Of<'a>> {
    let of = |data: &'a str| {
        let ns = |codec| analysis.line(data, codec, operation).map(|line| line.ns);
        Some(Of { ratio: ns(pair.json)? / ns(pair.protobuf)?, data })
    };
    results.data.iter().filter_map(|data| of(&data.name)).collect()
}

fn size_ratios<'a>(results: &'a CodecResults, pair: &Pair<'_>, of: fn(&Size) -> f64) -> Vec<Of<'a>> {
    let ratio = |data: &'a str| {
        let size = |codec| results.size(data, codec).map(of);
        Some(Of { ratio: size(pair.json)? / size(pair.protobuf)?, data })
    };
    results.data.iter().filter_map(|data| ratio(&data.name)).collect()
}

/// The smallest and the largest.
fn ends(ratios: Vec<Of<'_>>) -> Option<(Of<'_>, Of<'_>)> {
    let mut sorted = ratios;
    sorted.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let most = sorted.pop()?;
    let least = sorted.into_iter().next().unwrap_or(Of { ..most });
    Some((least, most))
}

fn where_it_wins(results: &CodecResults, analysis: &Analysis, pair: &Pair<'_>) -> Option<String> {
    let mut text = String::new();
    for operation in Operation::ALL {
        let (least, most) = ends(ratios(results, analysis, pair, operation))?;
        let Pair { protobuf, json } = pair;
        let what = match operation {
            Operation::Encode => format!("{json} takes"),
            Operation::Decode => " To decode, it takes".to_owned(),
            Operation::RoundTrip => " For a round trip,".to_owned(),
        };
        let sentence = match (operation, results.data.len()) {
            (_, 1) => format!("{what} {} {protobuf}’s time", factor(most.ratio)),
            (Operation::Encode, _) => format!(
                "{what} {} {protobuf}’s time to encode {}, and {} for {}",
                factor(most.ratio),
                most.data,
                factor(least.ratio),
                least.data
            ),
            _ => format!(
                "{what} {} for {}, and {} for {}",
                factor(most.ratio),
                most.data,
                factor(least.ratio),
                least.data
            ),
        };
        text += &sentence;
        text.push('.');
    }
    Some(text + &unlike_sentence(results, pair.protobuf, pair.json))
}

/// A message and an operation, the fastest of Protobuf there, and the fastest of another format.
struct Match<'a> {
    /// The other's time ÷ Protobuf's.
    ratio: f64,
    operation: Operation,
    protobuf: &'a LineFigures,
    other: &'a LineFigures,
}

impl fmt::Display for Match<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ratio, operation, protobuf, other } = self;
        let (data, factor) = (&protobuf.line.data, factor(*ratio));
        let [other_time, protobuf_time] = [other, protobuf].map(|line| time(line.ns));
        let [other, protobuf] = [other, protobuf].map(|line| &line.line.codec);
        let way = if self.protobuf.decodes == Some(Decodes::Borrowed) { ", borrowed" } else { "" };
        write!(
            f,
            "{data} {operation}{way}: {other_time} with {other}, {protobuf_time} with {protobuf} ({factor})"
        )
    }
}

/// Message by message and operation by operation, beginning where Protobuf does worst. Where bytes are decoded, owned
/// messages are matched with owned ones, and borrowed with borrowed.
///
/// All codecs take part, or those alone that know the type when they are compiled.
fn matches<'a>(
    results: &CodecResults,
    analysis: &'a Analysis,
    others: &[Format],
    only_static: bool,
) -> Vec<Match<'a>> {
    let takes_part = |line: &LineFigures| !(only_static && line.dynamic);
    let mut matches = Vec::new();
    for data in &results.data {
        for operation in Operation::ALL {
            let fastest = analysis.fastest_alike(&data.name, operation, others, takes_part);
            matches.extend(fastest.into_iter().map(|(protobuf, other)| Match {
                ratio: other.ns / protobuf.ns,
                operation,
                protobuf,
                other,
            }));
        }
    }
    matches.sort_by(|a, b| a.ratio.total_cmp(&b.ratio));
    matches
}

/// The fastest codec of each format, and beyond the noise or not.
fn where_it_does_not(results: &CodecResults, analysis: &Analysis) -> Option<String> {
    let floor = analysis.noise.as_ref().map_or(1.0, |noise| noise.floor);
    let json = matches(results, analysis, &JSON, false);
    let nearest = json.first()?;
    let faster = |it: &&Match<'_>| it.ratio * floor < 1.0;
    let level = |it: &&Match<'_>| it.ratio * floor >= 1.0 && it.ratio <= floor;
    let mut sentences = Vec::new();
    if nearest.ratio > floor {
        sentences.push(format!(
            "The fastest JSON codec was slower than the fastest of Protobuf everywhere. Nearest came {nearest}."
        ));
    }
    if let Some(listed) = listed(json.iter().filter(faster)) {
        sentences.push(format!("Fastest against fastest, JSON took less time at {listed}."));
    }
    if let Some(listed) = listed(json.iter().filter(level)) {
        sentences.push(format!("JSON was not slower beyond the noise at {listed}."));
    }
    let lost = json.iter().filter(|it| it.ratio <= floor).count();
    let known = matches(results, analysis, &JSON, true);
    let lost_if_known = known.iter().filter(|it| it.ratio <= floor);
    if lost_if_known.clone().count() > lost
        && let Some(listed) = listed(lost_if_known)
    {
        sentences.push(format!(
            "Of codecs that know the type when they are compiled, JSON’s was not slower beyond the noise at {listed}."
        ));
    }
    let message_pack = matches(results, analysis, &[Format::MessagePack], false);
    if let Some(listed) = listed(message_pack.iter().filter(faster)) {
        sentences.push(format!("MessagePack took less time at {listed}."));
    }
    if json.iter().any(|it| it.protobuf.decodes.is_some()) {
        sentences.push("What is owned is compared with what is owned, borrowed with borrowed.".to_owned());
    }
    Some(sentences.join(" "))
}

/// The first ones in a row, and how many more there are.
fn listed<T: ToString>(items: impl Iterator<Item = T>) -> Option<String> {
    const LISTED_MAX: usize = 3;
    let items: Vec<String> = items.map(|item| item.to_string()).collect();
    let more = match items.len().saturating_sub(LISTED_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let shown: Vec<&str> = items.iter().take(LISTED_MAX).map(String::as_str).collect();
    (!shown.is_empty()).then(|| shown.join("; ") + &more)
}

fn bytes(results: &CodecResults, pair: &Pair<'_>) -> Option<String> {
    let range = |of: fn(&Size) -> f64| {
        let (least, most) = ends(size_ratios(results, pair, of))?;
        Some(between(&least, &most))
    };
    let grows = |data: &&str| {
        results.size(data, pair.protobuf).is_some_and(|size| size.gzip.min(size.zstd) > size.raw)
    };
    let names = results.data.iter().map(|data| data.name.as_str());
    let grown: Vec<&str> = names.filter(grows).collect();
    let growing = if grown.is_empty() {
        String::new()
    } else {
        format!(" Protobuf’s bytes of {} do not get fewer by compression.", grown.join(", "))
    };
    Some(format!(
        "JSON is {} the bytes of Protobuf. Each message compressed by itself, the gap is {} with gzip and {} with \
         zstd.{growing}",
        range(|size| size.raw)?,
        range(|size| size.gzip)?,
        range(|size| size.zstd)?
    ))
}

fn of_a_call(results: &CodecResults, analysis: &Analysis) -> Option<String> {
    let range = |format: Format, in_flight: fn(u32) -> bool| {
        let mut shares: Vec<&Share> =
            analysis.shares.iter().filter(|it| it.format == format && in_flight(it.in_flight)).collect();
        shares.sort_by(|a, b| a.share().total_cmp(&b.share()));
        let (least, most) = (*shares.first()?, *shares.last()?);
        if shares.len() == 1 {
            return Some(percent(most.share()));
        }
        Some(format!(
            "{} ({}) to {} ({})",
            percent(least.share()),
            least.data,
            percent(most.share()),
            most.data
        ))
    };
    let alone: fn(u32) -> bool = |in_flight| in_flight == 1;
    let many: fn(u32) -> bool = |in_flight| in_flight > 1;
    let in_flight = analysis.shares.iter().map(|share| share.in_flight).max()?;
    let codec = |format| analysis.shares.iter().find(|it| it.format == format).map(|it| it.codec.as_str());
    let unlike = unlike_sentence(results, codec(Format::Protobuf)?, codec(Format::Json)?);
    Some(format!(
        "Of a lone call over a UNIX socket that echoes the message, all four conversions are {} with {} and {} \
         with {}. With {in_flight} calls in flight, of both sides’ processor time, they are {} and {}.{unlike}",
        range(Format::Protobuf, alone)?,
        codec(Format::Protobuf)?,
        range(Format::Json, alone)?,
        codec(Format::Json)?,
        range(Format::Protobuf, many)?,
        range(Format::Json, many)?
    ))
}

fn message_pack(results: &CodecResults, analysis: &Analysis) -> Option<String> {
    let pair = pair(results)?;
    let codec = results.first_of(&[Format::MessagePack])?;
    let against = |other: &str, operation| {
        let pair = Pair { protobuf: other, json: &codec.name };
        ends(ratios(results, analysis, &pair, operation))
    };
    let sizes = |other: &str| {
        ends(size_ratios(results, &Pair { protobuf: other, json: &codec.name }, |size| size.raw))
    };
    let range = |(least, most): (Of<'_>, Of<'_>)| between(&least, &most);
    let unlike =
        [pair.protobuf, pair.json].map(|other| unlike_sentence(results, &codec.name, other)).concat();
    Some(format!(
        "{} with names takes {} {}’s time for a round trip and {} its bytes; of {} it is {} the time and {} the \
         bytes.{unlike}",
        codec.name,
        range(against(pair.protobuf, Operation::RoundTrip)?),
        pair.protobuf,
        range(sizes(pair.protobuf)?),
        pair.json,
        range(against(pair.json, Operation::RoundTrip)?),
        range(sizes(pair.json)?)
    ))
}

/// Codecs of ProtoJSON beside the first of them, and that one beside JSON of plain structs.
fn proto_json(results: &CodecResults, analysis: &Analysis) -> Option<String> {
    let first = results.first_of(&[Format::ProtoJson])?;
    let beside = |name: &str, other: &str| {
        let pair = Pair { protobuf: other, json: name };
        let (least, most) = ends(ratios(results, analysis, &pair, Operation::RoundTrip))?;
        let unlike = unlike(results, name, other).map(|it| format!(" ({it})")).unwrap_or_default();
        Some(format!("{name} takes {} the time of {other}{unlike}", between(&least, &most)))
    };
    let is_other = |codec: &&CodecInfo| codec.format == Format::ProtoJson && codec.name != first.name;
    let others = results.codecs.iter().filter(is_other);
    let json = results.first_of(&[Format::Json]).and_then(|json| beside(&first.name, &json.name));
    let compared: Vec<String> =
        json.into_iter().chain(others.filter_map(|it| beside(&it.name, &first.name))).collect();
    (!compared.is_empty()).then(|| format!("For a round trip, {}.", compared.join(", ")))
}

/// Dynamic codecs of Protobuf beside each other, and beside those that know the type: the first, and the first that
/// decodes as the dynamic one does.
fn at_run_time(results: &CodecResults, analysis: &Analysis) -> Option<String> {
    let protobuf = |dynamic: bool| {
        let is_it = move |it: &&CodecInfo| it.format == Format::Protobuf && it.dynamic == dynamic;
        results.codecs.iter().filter(is_it)
    };
    let first = protobuf(true).next()?;
    let ours = first.name.as_str();
    let alike = protobuf(false).skip(1).find(|it| it.decodes.is_some() && it.decodes == first.decodes);
    let others = protobuf(false).take(1).chain(alike).chain(protobuf(true).skip(1));
    let compared: Vec<String> = others
        .filter_map(|codec| {
            let other = codec.name.as_str();
            let range = |operation| {
                let pair = Pair { protobuf: ours, json: other };
                let (least, most) = ends(ratios(results, analysis, &pair, operation))?;
                Some(if results.data.len() == 1 {
                    factor(most.ratio)
                } else {
                    format!("{} to {}", number(least.ratio), factor(most.ratio))
                })
            };
            Some(format!(
                "{other} takes {} its time to encode and {} to decode{}",
                range(Operation::Encode)?,
                range(Operation::Decode)?,
                codec.decodes.map(|decodes| format!(" ({decodes})")).unwrap_or_default()
            ))
        })
        .collect();
    (!compared.is_empty()).then(|| {
        let decodes =
            first.decodes.map(|decodes| format!("; what it decodes is {decodes}")).unwrap_or_default();
        format!(
            "{ours} knows a message’s type at run time only{decodes}. Beside it, {}.",
            compared.join("; ")
        )
    })
}

fn borrowing(results: &CodecResults, analysis: &Analysis) -> Option<String> {
    let has = |name: &str| results.codecs.iter().any(|codec| codec.name == name);
    if !has("buffa") || !has("buffa-view") {
        return None;
    }
    let pair = Pair { protobuf: "buffa-view", json: "buffa" };
    let (least, most) = ends(ratios(results, analysis, &pair, Operation::Decode))?;
    Some(format!(
        "A view leaves strings in the bytes that it was read from: to decode buffa’s owned message takes {} the time \
         of decoding its view and reading each field.",
        between(&least, &most)
    ))
}

/// Ten conversions beside the largest number of them.
fn first_conversions(analysis: &Analysis) -> Option<String> {
    let slower = |line: &LineFigures| {
        let (first, last) = (line.steps.first()?, line.steps.last()?);
        (first.conversions < last.conversions).then_some(first.ns / last.ns)
    };
    let mut ratios: Vec<f64> = analysis.lines.iter().filter_map(slower).collect();
    ratios.sort_by(f64::total_cmp);
    let (middle, most) = (median(ratios.iter().copied())?, ratios.last()?);
    let first =
        analysis.lines.iter().filter_map(|line| line.steps.first()).map(|step| step.conversions).min()?;
    Some(format!(
        "After the warm-up, each of {first} conversions took {} the time of one in the longest step in the median \
         line, {} in the worst.",
        factor(middle),
        factor(*most)
    ))
}

fn on_the_jvm(results: &CodecResults, analysis: &Analysis) -> Option<String> {
    let peer = results.peers.first()?;
    let of = |format: &[Format]| {
        peer.codecs.iter().find(|codec| format.contains(&codec.format)).map(|it| &*it.name)
    };
    let pair = Pair { protobuf: of(&[Format::Protobuf])?, json: of(&JSON)? };
    let (least, most) = ends(ratios(results, analysis, &pair, Operation::RoundTrip))?;
    let reached: Vec<&str> = ratios(results, analysis, &pair, Operation::RoundTrip)
        .into_iter()
        .filter(|it| it.ratio >= PUBLISHED_RATIO)
        .map(|it| it.data)
        .collect();
    let reached =
        if reached.is_empty() { "by none".to_owned() } else { format!("by {} alone", reached.join(", ")) };
    let ours = self::pair(results).and_then(|ours| {
        let beside = Pair { protobuf: ours.protobuf, json: pair.protobuf };
        let (least, most) = ends(ratios(results, analysis, &beside, Operation::RoundTrip))?;
        Some(format!(
            " {} takes {} to {} the time of {} here.{}",
            pair.protobuf,
            number(least.ratio),
            factor(most.ratio),
            ours.protobuf,
            unlike_sentence(results, pair.protobuf, ours.protobuf)
        ))
    });
    Some(format!(
        "{} takes {} the time of {} for a round trip: the factor of {PUBLISHED_RATIO} that was published \
         for ten million of them is reached {reached}.{}",
        pair.json,
        between(&least, &most),
        pair.protobuf,
        ours.unwrap_or_default()
    ))
}

fn noise(analysis: &Analysis) -> Option<String> {
    let noise = analysis.noise.as_ref()?;
    Some(format!(
        "{} lines were measured twice, beside themselves: the two differed by {} in the median and {} at most, which \
         is the noise floor. Within a line, the middle half of the rounds lay within {}.",
        noise.doubles,
        percent(noise.typical - 1.0),
        percent(noise.floor - 1.0),
        percent(noise.spread)
    ))
}

/// `0.95 (samples) to 2.1 times (order)`, and of one message `2.1 times`.
fn between(least: &Of<'_>, most: &Of<'_>) -> String {
    if least.data == most.data {
        return factor(most.ratio);
    }
    format!("{} ({}) to {} ({})", number(least.ratio), least.data, factor(most.ratio), most.data)
}
