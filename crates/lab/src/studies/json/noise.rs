//! Noise floor of a JSON study: gRPC at our server measured against itself.

use thalweg_measure::statistics::Ratio;

use super::case::Case;
use super::results::JsonResults;
use super::window::{JsonWindow, Purpose, WindowResult};
use crate::load::noise::nearest;
use crate::load::paired::ratio_by_round;

/// Noise floors of an endpoint measured against itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct JsonNoise {
    pub(crate) floors: Vec<CaseFloor>,
}

/// Noise floor of one figure at one case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CaseFloor {
    /// Purpose of the figure: medians of lone calls, or rates.
    pub(crate) of: Purpose,
    pub(crate) case: Case,
    /// Ratio of the endpoint to itself, always with an interval.
    pub(crate) ratio: Ratio,
}

impl JsonNoise {
    pub(super) fn of(results: &JsonResults) -> Self {
        let mut floors: Vec<CaseFloor> = Vec::new();
        for duplicate in results.windows.iter().filter(|it| it.window.is_duplicate) {
            let (of, case) = (duplicate.window.purpose, duplicate.window.case);
            if floors.iter().any(|floor| (floor.of, floor.case) == (of, case)) {
                continue;
            }
            let figures = |is_duplicate: bool| figures(results, &duplicate.window, is_duplicate);
            // Too few pairs do not show the size of the noise.
            let found =
                ratio_by_round(&figures(true), &figures(false)).filter(|ratio| ratio.interval.is_some());
            floors.extend(found.map(|ratio| CaseFloor { of, case, ratio }));
        }
        Self { floors }
    }

    /// Returns the largest floor, as a log ratio.
    pub(crate) fn largest(&self) -> f64 {
        nearest(&self.floors, |floor| Some(floor.log()), &[&|_| true])
    }

    /// Returns the floor of medians or rates at this case, as a log ratio. Without one it uses the same message's,
    /// then the largest of the same figure, then the largest of all.
    pub(crate) fn floor(&self, of: Purpose, case: Case) -> f64 {
        let is_case = |floor: &CaseFloor| floor.of == of && floor.case == case;
        let is_message = |floor: &CaseFloor| floor.of == of && floor.case.shape == case.shape;
        let is_figure = |floor: &CaseFloor| floor.of == of;
        // Every floor counts, even one of zero.
        nearest(&self.floors, |floor| Some(floor.log()), &[&is_case, &is_message, &is_figure, &|_| true])
    }
}

impl CaseFloor {
    /// Returns the floor as a log ratio.
    pub(crate) fn log(&self) -> f64 {
        self.ratio.spread()
    }
}

/// Returns the rounds and figures of an endpoint's windows at a case.
fn figures(results: &JsonResults, of: &JsonWindow, is_duplicate: bool) -> Vec<(u32, f64)> {
    let is_of = |it: &&WindowResult| {
        let window = &it.window;
        (&window.endpoint, window.case, window.purpose, window.is_duplicate)
            == (&of.endpoint, of.case, of.purpose, is_duplicate)
    };
    let figure = |it: &WindowResult| {
        let load = it.valid()?;
        let figure = match of.purpose {
            Purpose::Rate => load.rate_per_s,
            _ => load.latency_ns?.p50 as f64,
        };
        Some((it.window.round, figure))
    };
    results.windows.iter().filter(is_of).filter_map(figure).collect()
}

#[cfg(test)]
mod tests {
    use thalweg_measure::statistics::Interval;

    use super::*;
    use crate::echo::Shape;

    const PUBLISHED: Shape = Shape::Strings { count: 5000, letters: 20 };

    fn floor(of: Purpose, shape: Shape, ratio: f64) -> CaseFloor {
        let interval = Some(Interval { low: ratio, high: ratio });
        CaseFloor { of, case: Case::plain(shape), ratio: Ratio { ratio, interval, pairs: 6 } }
    }

    fn check(noise: &JsonNoise, case: Case, latency: f64, rate: f64) {
        let found = [Purpose::Latency, Purpose::Rate].map(|of| noise.floor(of, case).exp());
        let is_near = |(found, expected): (f64, f64)| (found - expected).abs() < 1e-9;
        assert!(is_near((found[0], latency)) && is_near((found[1], rate)), "{case}: {found:?}");
    }

    #[test]
    fn noise_floor_matches_kind_of_figure_and_message() {
        let floors = vec![
            floor(Purpose::Latency, PUBLISHED, 1.05),
            floor(Purpose::Latency, Shape::Person, 1.2),
            // One disturbed cell.
            floor(Purpose::Rate, PUBLISHED, 2.4),
            floor(Purpose::Rate, Shape::Person, 1.1),
        ];
        let noise = JsonNoise { floors };
        let published = Case::plain(PUBLISHED);
        check(&noise, published, 1.05, 2.4);
        check(&noise, Case::plain(Shape::Person), 1.2, 1.1);
        // Cases without a floor use the message's, or else the largest of the figure.
        check(&noise, Case { round_trip_ns: 1_000_000, ..published }, 1.05, 2.4);
        check(&noise, Case::plain(Shape::Own), 1.2, 2.4);
        // Without a floor of the figure, the largest of all is used.
        let latencies = JsonNoise { floors: vec![floor(Purpose::Latency, Shape::Person, 1.2)] };
        check(&latencies, published, 1.2, 1.2);
        check(&JsonNoise::default(), published, 1.0, 1.0);
    }
}
