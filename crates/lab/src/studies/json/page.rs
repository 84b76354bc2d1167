//! Page of a JSON study.

mod bars;
mod plots;

use maud::{Markup, html};
use thalweg_measure::figures::{ratio_figure, time};
use thalweg_measure::page::parts::card;
use thalweg_measure::page::section::{Block, Section};
use thalweg_measure::wording::counted;

use super::analysis::JsonAnalysis;
use super::case::{Case, title};
use super::cell_pair::{LEGEND, size};
use super::cells::{Cells, EndpointCell};
use super::endpoint::Endpoint;
use super::question::Question;
use super::results::JsonResults;
use crate::echo::{Protocol, Shape};
use crate::load::gathered::distinct;
use crate::load::verdict::Verdict;
use crate::load::{facts, stacks};

/// Questions in the navigation bar.
const LINKS: [(&str, &str); 5] = [
    ("published", "Published"),
    ("parts", "Breakdown"),
    ("sizes", "Messages"),
    ("networks", "Networks"),
    ("servers", "Servers"),
];

pub(super) fn sections(study: &JsonAnalysis<'_>) -> Vec<Section> {
    let JsonAnalysis { results, cells, questions, .. } = study;
    let mut sections = vec![
        Section::new("stages", "Stages", "Where a call’s time goes", bars::stages(results, cells)),
        Section::new("rates", "Rates", "Server capacity", bars::rates(results, cells)),
    ];
    sections.extend(questions.iter().map(|it| question(it, results, cells)));
    sections.push(stacks::section("How each server was set up", &results.stacks, &results.left_out));
    sections
}

fn question(question: &Question, results: &JsonResults, cells: &Cells) -> Section {
    let link = LINKS.iter().find(|(id, _)| *id == question.id).map_or("", |(_, link)| link);
    let mut blocks: Vec<Block> = question.sentences.iter().cloned().map(Block::Sentence).collect();
    blocks.extend(plots::of_question(question.id, results, cells));
    blocks.extend(question.has_doubt().then(|| Block::about(LEGEND)));
    blocks.push(Block::Table(question.table.clone()));
    Section::new(question.id, link, question.title, blocks)
}

/// Returns a sentence on what was measured and on which machine.
pub(super) fn lede(results: &JsonResults) -> String {
    let versions = distinct(results.stacks.iter().map(|stack| stack.version.as_str()));
    let own = results.settings.own.as_ref().map(|own| {
        format!(
            " Your own messages are {} of the type {}.",
            counted(own.messages as u64, "message"),
            own.type_name
        )
    });
    format!(
        "{}, on {}. The client is thalweg’s throughout.{}",
        versions.join(", "),
        results.origin(&results.settings.arguments).machine_text(),
        own.unwrap_or_default()
    )
}

/// Returns cards with the cost of a call over gRPC and JSON, for the published message and a small one.
pub(super) fn cards(study: &JsonAnalysis<'_>) -> Markup {
    let JsonAnalysis { results, cells, unanswered, .. } = study;
    let factor = |shape: Shape| {
        let case = Case::plain(shape);
        let pair = cells.pair_at(case, &Endpoint::ours(Protocol::JsonHttp1), &Endpoint::reference())?;
        let compared = pair.latency();
        let (doubt, amounts_to) = match compared.verdict {
            Verdict::Faster | Verdict::Slower => ("", ""),
            Verdict::NoDifference => ("", " (no difference)"),
            Verdict::CannotTell | Verdict::NotMeasured => ("? ", " (no difference is shown)"),
        };
        let detail = format!(
            "the time of gRPC by JSON over HTTP/1.1, one call at a time: {} against {}{amounts_to}",
            time(pair.one.p50()?),
            time(pair.of_other(EndpointCell::p50)?)
        );
        let figure = format!("{doubt}{} ×", ratio_figure(compared.ratio?.ratio));
        Some(card(&thalweg_measure::wording::capitalised(&title(shape)), &figure, &detail))
    };
    let bytes = || {
        let case = Case::plain(results.settings.published);
        let pair = cells.pair_at(case, &Endpoint::ours(Protocol::JsonHttp1), &Endpoint::reference())?;
        let (json, grpc) = (pair.one.bodies()?.0, pair.other?.bodies()?.0);
        let more = 100.0 * (json / grpc.max(1.0) - 1.0);
        let detail = format!("more in a JSON body: {} against {}", size(json), size(grpc));
        let what = format!("Bytes of {}", title(results.settings.published));
        Some(card(&what, &format!("{more:.1} %"), &detail))
    };
    let factors: Vec<Markup> = results.settings.featured().into_iter().filter_map(factor).collect();
    html! {
        @for card in factors.into_iter().chain(bytes()).filter(|_| unanswered.is_none()) { (card) }
    }
}

pub(super) fn method(results: &JsonResults) -> Vec<String> {
    let settings = &results.settings;
    let pinned = facts::pinned(settings.client_cpus.as_ref(), settings.server_cpus.as_ref());
    let own = settings.own.as_ref().map(|_| OWN);
    let sentences = [OBJECTS].into_iter().chain(own).chain(METHOD).map(str::to_owned);
    [pinned].into_iter().chain(sentences).collect()
}

const OBJECTS: &str = "One client, thalweg’s, calls all servers. It uses prost’s messages for gRPC and gRPC-Web, and \
                       serde structs with serde_json for JSON and with rmp-serde for MessagePack. A server decodes \
                       each request to objects of its language and encodes the response from them again.";
const OWN: &str = "For your own messages there is no generated code, so client and server use dynamic messages of \
                   thalweg-protobuf in all formats: each end decodes to such a message and encodes from one, JSON and \
                   MessagePack by way of Protobuf’s bytes. Their strings stay in the received bytes, where generated \
                   code would copy them. The messages are sent in turn.";
const METHOD: [&str; 5] = [
    "Latencies are of one call at a time, from the request object to the decoded response object. Each call asks the \
     server for its timestamps, in ns of the clock that all processes of the machine share. Together with the client’s \
     own they divide the call into stages without gap or overlap. Decoding or encoding that a server’s stack does not \
     show counts as part of the way there or back.",
    "Rates are of 64 calls in flight, or 16 or 4 if messages are large, over one HTTP/2 connection or as many HTTP/1.1 \
     connections. The client encodes the request once and checks only the response’s status and length, so the server \
     is the limit.",
    "Variants are measured in short windows in turn, forward and then in reverse order, so slow phases of the machine \
     affect all of them. Ratios are of windows of the same round, with 95 % intervals. The first variant is also \
     measured against itself with each message: the difference is the noise floor of that message, separately for \
     times and rates.",
    "No call of a window is left out. A window is left out as a whole, and named, if calls failed in it or if its \
     client or server had to wait for CPUs. For the first calls of a server, a new one is started. A server whose code \
     is compiled while it runs is driven for some seconds before it is measured, under the same loads: with as many \
     calls in flight, and one at a time.",
    "Networks are simulated by a link in user space between both ends, which delays each byte by half of the added \
     round trip in each direction and limits the bits per second.",
];
