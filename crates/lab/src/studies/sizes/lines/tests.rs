use super::super::choice::Choices;
use super::super::findings::{findings, headlines};
use super::*;
use crate::load::doubts::doubts;
use crate::load::gathered::gather_cells;
use crate::load::paired::is_compared;
use crate::load::{Pattern, PointResult};
use crate::stack::Pair;
use crate::tests::sample;

/// Returns four equal windows of each size.
fn line(work: Work, in_flight: u32, transport: Transport, p50s: &[(u64, u64)]) -> Vec<PointResult> {
    let kind = Kind { work, in_flight, connections: 1 };
    let pair = is_compared(kind).then(Pair::ours);
    let of_size = |&(size, p50): &(u64, u64)| {
        let at = (kind, transport, ByteSize(size));
        let window = |round| sample::window(pair.clone(), at, round, 1e9 / p50 as f64);
        (0..4).map(window).collect::<Vec<_>>()
    };
    p50s.iter().flat_map(of_size).collect()
}

fn lines(points: &[Vec<PointResult>]) -> SizesLines<'_> {
    SizesLines {
        lines: SizesLines::arranged(&gather_cells(points.iter().flatten())),
        noise: Noise::default(),
    }
}

const UNARY: Work = Work::Call(CallType::Unary);

fn check_plateau(p50s: &[(u64, u64)], expected: Option<(u64, u64, Option<u64>)>) {
    let line = [line(UNARY, 1, Transport::Tcp, p50s)];
    let found = lines(&line).lines[0].plateau();
    let found =
        found.map(|plateau| (plateau.level_ns, plateau.last.0, plateau.leaves.map(|(size, _)| size.0)));
    assert_eq!(found, expected, "{p50s:?}");
}

#[test]
fn plateau_ends_after_its_last_size() {
    check_plateau(&[(0, 80), (1, 82), (64, 81), (1024, 100), (65_536, 200)], Some((81, 1024, Some(65_536))));
}

#[test]
fn one_disturbed_point_does_not_end_a_plateau() {
    check_plateau(
        &[(0, 80), (1, 400), (64, 81), (256, 500), (1024, 100), (4096, 200)],
        Some((81, 1024, Some(4096))),
    );
}

#[test]
fn plateau_may_cover_all_sizes_or_only_the_first() {
    check_plateau(&[(0, 80), (1, 80), (64, 80), (1024, 119)], Some((80, 1024, None)));
    check_plateau(&[(0, 80), (1, 160), (64, 320), (1024, 640)], Some((160, 1, Some(64))));
}

#[test]
fn two_sizes_do_not_form_a_plateau() {
    check_plateau(&[(0, 80), (1, 80)], None);
}

#[test]
fn each_line_is_compared_with_the_socket_of_its_pattern() {
    let (echo, one_way) = (Work::Socket(Pattern::Echo), Work::Socket(Pattern::OneWay));
    let lines_of = [
        line(UNARY, 1, Transport::Tcp, &[(64, 100)]),
        line(UNARY, 16, Transport::Tcp, &[(64, 50)]),
        line(Work::Call(CallType::ClientStream), 1, Transport::Tcp, &[(64, 40)]),
        line(Work::Call(CallType::BidiStream), 1, Transport::Tcp, &[(64, 20)]),
        line(echo, 1, Transport::Tcp, &[(64, 50)]),
        line(echo, 16, Transport::Tcp, &[(64, 10)]),
        line(Work::Socket(Pattern::Pipelined), 1, Transport::Tcp, &[(64, 16)]),
        line(one_way, 1, Transport::Tcp, &[(64, 10)]),
        line(echo, 1, Transport::Uds, &[(64, 1)]),
    ];
    let analysis = lines(&lines_of);
    let share = |line: &SizesLine<'_>| analysis.share_of_socket(&line.cells[0]);
    let shares: Vec<_> = analysis.lines.iter().filter_map(share).map(|it| (it * 100.0).round()).collect();
    assert_eq!(shares, [50.0, 20.0, 25.0, 80.0]);
}

#[test]
fn sentences_include_the_figures() {
    let tcp = [(0, 80_000), (1024, 81_000), (16_384, 90_000), (65_536, 200_000)];
    let uds = [(0, 40_000), (1024, 41_000), (16_384, 42_000), (65_536, 43_000)];
    let points = [line(UNARY, 1, Transport::Tcp, &tcp), line(UNARY, 1, Transport::Uds, &uds)];
    let analysis = lines(&points);
    let findings = findings(&analysis, &Choices::of(&analysis));
    let text_of = |topic| findings.iter().find(|finding| finding.topic == topic).unwrap().text.clone();
    assert_eq!(
        text_of("Latency"),
        "Over TCP a lone unary call takes 81 µs (median) and stays within 1.5 times that up to 16 KiB. Latency leaves \
         this plateau between 16 KiB and 64 KiB, where a call takes 200 µs. Over UDS a lone unary call takes 41 µs \
         (median), and no size up to 64 KiB takes more than 1.5 times that: latency does not leave its plateau."
    );
    assert_eq!(
        text_of("TCP or UDS"),
        "A lone unary call of 0 B takes 50 % less time over UDS than over TCP (-50 to -50 %); one of 64 KiB takes 78 % \
         less time (-78 to -78 %)."
    );
    let names: Vec<_> =
        headlines(&analysis).into_iter().map(|headline| (headline.name, headline.figure)).collect();
    assert_eq!(names[0], ("A lone call", "40 µs".to_owned()));
    assert_eq!(names[1], ("Latency is flat up to", "16 KiB".to_owned()));
    assert_eq!(names[3], ("Highest throughput", "1.52 GB/s".to_owned()));
}

#[test]
fn empty_lines_have_no_findings() {
    let analysis = lines(&[]);
    assert_eq!(findings(&analysis, &Choices::of(&analysis)), []);
    assert_eq!(headlines(&analysis), []);
}

#[test]
fn doubt_about_many_points_is_reported_once() {
    let mut results = crate::tests::sample::sizes();
    assert_eq!(doubts(&results), []);

    for (index, result) in results.points.iter_mut().enumerate().take(5) {
        let crate::load::Outcome::Measured(measured) = &mut result.outcome else { continue };
        let note = |text: String, invalidates| crate::record::Note { text, invalidates };
        measured.notes.push(note(format!("the client was busy for {} %", 95 + index), true));
        if index == 2 {
            measured.errors.insert("UNAVAILABLE".to_owned(), 7);
        }
    }
    let first = results.points[0].point.to_string();
    let third = results.points[2].point.to_string();
    let total = results.points.len();
    results.planned += 1;
    assert_eq!(
        doubts(&results).iter().map(ToString::to_string).collect::<Vec<_>>(),
        [
            format!("The study was cut short: {total} of {} windows were measured.", total + 1),
            format!("Not valid in 5 of {total} windows, first in {first}: the client was busy for 95 %."),
            format!("Not valid: {third}: calls failed: 7 UNAVAILABLE."),
        ]
    );
}
