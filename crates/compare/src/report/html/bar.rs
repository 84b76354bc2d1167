//! A ratio as a bar: its interval, 1 and the margin on a logarithmic scale.

use maud::{Markup, html};

use crate::report::model::FigureComparison;

/// Bars reach from ½ to 2.
const SCALE: f64 = std::f64::consts::LN_2;
/// Width from ½ to 2.
const WIDTH: f64 = 200.0;
/// Space for points at both ends.
const ROOM: f64 = 8.0;
const HEIGHT: f64 = 20.0;
const MIDDLE: f64 = HEIGHT / 2.0;

/// Formats the scale's labels, above the bars.
pub(super) fn scale() -> Markup {
    let texts = [(at(0.5), "start", "½"), (at(1.0), "middle", "1"), (at(2.0), "end", "2")];
    html! {
        svg.scale viewBox={ "0 0 " (WIDTH + 2.0 * ROOM) " 14" } width=(WIDTH + 2.0 * ROOM) height="14"
            role="img" aria-label="from half to double, on a logarithmic scale" {
            @for (x, anchor, text) in texts { text x=(x) y="11" text-anchor=(anchor) { (text) } }
        }
    }
}

/// Formats a bar. Values beyond the scale are arrows at its end.
pub(super) fn bar(compared: &FigureComparison, margin: f64) -> Markup {
    let (from, to) = (at(1.0 / (1.0 + margin)), at(1.0 + margin));
    let x = at(compared.ratio);
    html! {
        svg.bar-of viewBox={ "0 0 " (WIDTH + 2.0 * ROOM) " " (HEIGHT) } width=(WIDTH + 2.0 * ROOM) height=(HEIGHT)
            aria-hidden="true" {
            rect.margin x=(from) y="0" width=(to - from) height=(HEIGHT) {}
            @for x in [at(0.5), at(2.0)] {
                line.end x1=(x) x2=(x) y1=(MIDDLE - 3.0) y2=(MIDDLE + 3.0) {}
            }
            line.one x1=(at(1.0)) x2=(at(1.0)) y1="0" y2=(HEIGHT) {}
            @if let Some(interval) = compared.interval {
                line.interval x1=(at(interval.low)) x2=(at(interval.high)) y1=(MIDDLE) y2=(MIDDLE) {}
            }
            @if compared.ratio.ln() > SCALE {
                path.point d={ "M" (x - 4.0) " " (MIDDLE - 6.0) "l9 6l-9 6z" } {}
            } @else if compared.ratio.ln() < -SCALE {
                path.point d={ "M" (x + 4.0) " " (MIDDLE - 6.0) "l-9 6l9 6z" } {}
            } @else {
                circle.point.unsure[compared.interval.is_none()] cx=(x) cy=(MIDDLE) r="4.5" {}
            }
        }
    }
}

/// Returns the x coordinate of a ratio, to a tenth of a pixel.
fn at(ratio: f64) -> f64 {
    let position = ROOM + WIDTH / 2.0 * (1.0 + (ratio.ln() / SCALE).clamp(-1.0, 1.0));
    (position * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::at;

    #[test]
    fn bar_positions_of_half_one_and_double() {
        let positions = [0.01, 0.5, 1.0, 2.0, 100.0].map(|ratio| at(ratio).to_string());
        assert_eq!(positions, ["8", "8", "108", "208", "208"]);
    }
}
