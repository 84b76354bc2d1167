//! Checks that headline, verdicts, tables, terminal and page agree, on random figures. All derive from the same rows.

use thalweg_measure::figures::bound;

use super::super::analysis::ChannelsAnalysis;
use super::super::answer::answer;
use super::super::numbers::{LoadRow, LoadsTally};
use super::super::{report, terminal};
use super::*;
use crate::load::AaSide;
use crate::load::results::AaResult;
use crate::load::verdict::{MARGIN, Verdict};

const WORLDS: u64 = 40;

/// Pseudo-random numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % bound
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Returns a number from -1 to 1.
    fn share(&mut self) -> f64 {
        self.below(2001) as f64 / 1000.0 - 1.0
    }
}

/// Returns random stacks, strategies, rounds and failures, with large or small differences and noise.
fn world(seed: u64) -> LabResults {
    let mut random = Random(seed);
    let mut results = empty();
    results.points.clear();
    results.settings.target = (random.below(6) == 0).then(|| "10.0.0.1:50051".to_owned());
    let rounds = random.of(&[1, 2, 3, 4, 6, 6, 8]);
    let spread = random.of(&[0.002, 0.01, 0.05, 0.3]);
    let differ = random.of(&[0.02, 0.2, 1.5]);
    let stacks = random.of(&[&["thalweg"][..], &["thalweg", "tonic"]]);
    let several = [Strategy::Fixed(2), FOUR, Strategy::PerWorker, Strategy::Adaptive, Strategy::PerCall];
    let several = several.map(|strategy| (strategy, random.below(4) > 0));
    let busy = random.of(&[100_000, 980_000]);
    for &stack in stacks {
        for round_trip in [Duration::ZERO, Duration::from_millis(5)] {
            for in_flight in [1, 4, 64] {
                let strategies =
                    several.iter().filter(|(strategy, is_there)| *is_there && strategy.connections(64) <= 64);
                for strategy in strategies.map(|(strategy, _)| *strategy).chain([ONE]) {
                    let connections = match strategy {
                        Strategy::Adaptive => 1 + random.below(3) as u32,
                        strategy => strategy.connections(in_flight),
                    };
                    let level = 1e4 * f64::from(in_flight).powf(0.4) * (differ * random.share()).exp();
                    for round in 0..rounds {
                        let rate = level * (spread * random.share()).exp();
                        let window = window((stack, strategy), round_trip, in_flight, (rate, connections));
                        let mut window = window.in_round(round);
                        window.usage.as_mut().unwrap().client.user_ns = busy;
                        if random.below(40) == 0 {
                            window.outcome = Outcome::Failed("not today".to_owned());
                        }
                        results.points.push(window);
                    }
                }
            }
        }
    }
    for round in 0..random.of(&[0, 6]) {
        for label in [AaSide::A, AaSide::B] {
            let rate = 1e4 * (spread * random.share()).exp();
            let window = window(("thalweg", ONE), Duration::ZERO, 64, (rate, 1));
            results.aa.push(AaResult { label, window: window.in_round(round) });
        }
    }
    results
}

/// Counts rows by result, from their ratios alone.
fn counted(rows: &[&LoadRow], noise: f64) -> LoadsTally {
    let mut tally = LoadsTally::default();
    for row in rows {
        let ratios = || row.several.iter().map(|strategy| strategy.over_one.ratio);
        let is_gain = |ratio: thalweg_measure::statistics::Ratio| {
            ratio.ratio.ln() > noise && ratio.interval.is_some_and(|interval| interval.low > 1.0)
        };
        let is_none = |ratio: Option<thalweg_measure::statistics::Ratio>| {
            ratio.and_then(|ratio| ratio.interval).is_some_and(|interval| interval.high <= MARGIN)
        };
        if row.several.is_empty() {
            continue;
        }
        if ratios().flatten().any(is_gain) {
            tally.gains += 1;
        } else if ratios().all(is_none) {
            tally.nothing += 1;
        } else {
            tally.cannot_tell += 1;
        }
    }
    tally
}

/// Counts rows by result in all terminal tables of best numbers.
fn printed(text: &str) -> LoadsTally {
    let mut tally = LoadsTally::default();
    let tables = text.split("best number of connections\n").skip(1);
    for table in tables {
        for row in table.lines().skip(1).take_while(|line| !line.is_empty()) {
            let cells: Vec<&str> = row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
            match cells[1] {
                "cannot tell" => tally.cannot_tell += 1,
                "1" if cells[2] != "–" => tally.nothing += 1,
                "1" => {}
                number => {
                    assert!(number.parse::<u32>().unwrap() > 1, "{row}");
                    tally.gains += 1;
                }
            }
        }
    }
    tally
}

/// Checks the headline against all loads.
fn check_headline(headline: &str, LoadsTally { gains, nothing, cannot_tell }: LoadsTally, is_aimed: bool) {
    let says = |words: &str| headline.contains(words);
    assert_eq!(says("help at") || says("Yes"), gains > 0, "{headline}");
    assert!(
        !(gains > 0 && (says("connections make no difference") || says("No:") || says("not shown"))),
        "{headline}"
    );
    assert_eq!(says("nconclusive"), cannot_tell > 0, "{headline}");
    if is_aimed || gains + nothing + cannot_tell == 0 {
        return;
    }
    let loads = gains + nothing + cannot_tell;
    for (number, words) in [(gains, "help at "), (nothing, "no difference at ")] {
        let stated = headline.split_once(words).and_then(|(_, rest)| rest.split([' ', '.', ',']).next());
        // If all loads are meant, the headline says "any".
        let expected =
            if number == loads && number == nothing { "any".to_owned() } else { number.to_string() };
        assert_eq!(stated, (number > 0).then_some(expected.as_str()), "{headline}");
    }
    assert!(says(&format!("f {loads} load")), "{headline}");
}

fn check_verdict(verdict: &StackVerdict, noise: f64) {
    let StackVerdict { numbers, judgement, text, advice, .. } = verdict;
    let rows: Vec<&LoadRow> = numbers.rows.iter().collect();
    let tally = counted(&rows, noise);
    assert_eq!((judgement.tally, judgement.gain.is_some()), (tally, tally.gains > 0), "{text}");
    let says = |words: &str| text.contains(words) || advice.contains(words);
    if says("do not help") || says("would not help") {
        assert_eq!((tally.gains, tally.cannot_tell), (0, 0), "{text} {advice}");
    }
    assert_eq!(says("as much; more connections help from"), tally.gains > 0, "{text}");
    assert!(!says("help little") || tally.gains > 0, "{text} {advice}");
    if matches!(judgement.limit, Limit::Channel | Limit::Streams) {
        assert!(tally.gains > 0 && says("Use the number that is best"), "{text} {advice}");
    }
    let is_behind = rows
        .iter()
        .any(|row| row.adaptive.as_ref().is_some_and(|adaptive| adaptive.share.verdict == Verdict::Slower));
    assert_eq!(says("adaptive channel falls behind"), is_behind, "{text}");
    assert!(!is_behind || !says("let the channel find"), "{text} {advice}");
    for row in rows {
        if let Some(gain) = row.gain() {
            assert!(gain.connections > 1 && gain.lower_bound() > 1.0, "{row:?}");
        }
    }
}

#[test]
fn headline_verdicts_and_tables_never_contradict_each_other() {
    let mut total = LoadsTally::default();
    for seed in 0..WORLDS {
        let results = world(seed);
        let analysis = ChannelsAnalysis::of(&results);
        let noise = analysis.channels.noise;
        let rows: Vec<&LoadRow> =
            analysis.verdicts.iter().flat_map(|verdict| &verdict.numbers.rows).collect();
        let tally = counted(&rows, noise);
        for verdict in &analysis.verdicts {
            check_verdict(verdict, noise);
        }
        let text = terminal::text(&analysis);
        assert_eq!(printed(&text), tally, "{seed}: {text}");
        let page = report(&analysis).page;
        if let Some(unanswered) = &analysis.unanswered {
            assert!(
                analysis.verdicts.is_empty() && page.contains(&bound(unanswered)),
                "{seed}: {unanswered}"
            );
            continue;
        }
        let marked = |class: &str| page.matches(&format!("class=\"best {class}\"")).count();
        let marked =
            LoadsTally { gains: marked("several"), nothing: marked("one"), cannot_tell: marked("open") };
        assert_eq!(marked, tally, "{seed}");
        let headline = answer(&analysis.verdicts, &results.settings).unwrap();
        assert!(page.contains(&bound(&headline)), "{seed}: {headline}");
        let is_aimed = results.settings.target.is_some();
        // Advice uses only the first table, since there is one server and one delay.
        let stated = if is_aimed {
            counted(&analysis.verdicts[0].numbers.rows.iter().collect::<Vec<_>>(), noise)
        } else {
            tally
        };
        check_headline(&headline, stated, is_aimed);
        total.gains += tally.gains;
        total.nothing += tally.nothing;
        total.cannot_tell += tally.cannot_tell;
    }
    assert!(total.gains > 20 && total.nothing > 20 && total.cannot_tell > 20, "{total:?}");
}
