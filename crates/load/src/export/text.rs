//! Prometheus text formats: its own (0.0.4) and OpenMetrics 1.0.

use std::fmt::Write;

use super::accept::TextFormat;
use super::families::{BOUNDS_S, Buckets, Family, Point, Points};

/// Formats all metrics, named by Prometheus's conventions, such as `thalweg_load_io_bytes_total`.
pub(super) fn text(families: &[Family], format: TextFormat) -> String {
    let mut out = Text { text: String::new(), format };
    for family in families {
        out.family(family);
    }
    if format == TextFormat::OpenMetrics {
        out.text.push_str("# EOF\n");
    }
    out.text
}

struct Text {
    text: String,
    format: TextFormat,
}

impl Text {
    fn family(&mut self, family: &Family) {
        let unit = match family.unit {
            "s" => "seconds",
            "By" => "bytes",
            _ => "",
        };
        let mut name = family.name.replace('.', "_");
        if !unit.is_empty() {
            name = format!("{name}_{unit}");
        }
        match &family.points {
            Points::Counts(points) => self.counter(&name, unit, family.about, points),
            Points::Seconds(points) => self.counter(&name, unit, family.about, points),
            Points::Now(points) => {
                self.metadata(&name, "gauge", unit, family.about);
                for Point { attributes, value } in points {
                    self.sample(&name, attributes, None, value);
                }
            }
            Points::Histograms(points) => {
                self.metadata(&name, "histogram", unit, family.about);
                for point in points {
                    self.histogram(&name, point);
                }
            }
        }
    }

    fn counter(&mut self, name: &str, unit: &str, about: &str, points: &[Point<impl std::fmt::Display>]) {
        let samples = format!("{name}_total");
        let family_name = if self.format == TextFormat::OpenMetrics { name } else { &samples };
        self.metadata(family_name, "counter", unit, about);
        for Point { attributes, value } in points {
            self.sample(&samples, attributes, None, value);
        }
    }

    fn histogram(&mut self, name: &str, point: &Point<Buckets>) {
        let Point { attributes, value } = point;
        let bounds = BOUNDS_S.iter().map(|bound| format!("{bound:?}")).chain(["+Inf".to_owned()]);
        let mut upto = 0;
        for (bound, count) in bounds.zip(&value.counts) {
            upto += count;
            self.sample(&format!("{name}_bucket"), attributes, Some(&bound), &upto);
        }
        self.sample(&format!("{name}_sum"), attributes, None, &value.sum_s);
        self.sample(&format!("{name}_count"), attributes, None, &value.count);
    }

    fn metadata(&mut self, name: &str, kind: &str, unit: &str, about: &str) {
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        if self.format == TextFormat::OpenMetrics && !unit.is_empty() {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(self.text, "# HELP {name} {about}");
    }

    fn sample(
        &mut self,
        name: &str,
        attributes: &[(&'static str, String)],
        bound: Option<&str>,
        value: &impl std::fmt::Display,
    ) {
        let labels = attributes.iter().map(|(name, value)| (*name, value.as_str()));
        let labels = labels.chain(bound.map(|bound| ("le", bound)));
        let labels: Vec<String> = labels
            .map(|(name, value)| format!("{}=\"{}\"", name.replace('.', "_"), escaped(value)))
            .collect();
        let _ = writeln!(self.text, "{name}{{{}}} {value}", labels.join(","));
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn families() -> Vec<Family> {
        let mut counts = vec![0; BOUNDS_S.len() + 1];
        (counts[2], counts[41]) = (3, 1);
        let buckets = Buckets { counts, count: 4, sum_s: 200.5, min_s: 0.00002, max_s: 200.0 };
        let with = || vec![("grpc.method", "a.B/\"C\"\\".to_owned())];
        vec![
            Family {
                name: "a.io",
                unit: "By",
                about: "Bytes",
                points: Points::Counts(vec![Point { attributes: with(), value: 7 }]),
            },
            Family {
                name: "a.now",
                unit: "{call}",
                about: "Now",
                points: Points::Now(vec![Point { attributes: Vec::new(), value: 1 }]),
            },
            Family {
                name: "a.time",
                unit: "s",
                about: "Time",
                points: Points::Histograms(vec![Point { attributes: with(), value: buckets }]),
            },
        ]
    }

    #[test]
    fn metrics_follow_prometheus_text_format() {
        let text = text(&families(), TextFormat::Prometheus);
        let label = r#"grpc_method="a.B/\"C\"\\""#;
        let begin = format!(
            "# TYPE a_io_bytes_total counter\n# HELP a_io_bytes_total Bytes\na_io_bytes_total{{{label}}} 7\n\
             # TYPE a_now gauge\n# HELP a_now Now\na_now{{}} 1\n\
             # TYPE a_time_seconds histogram\n# HELP a_time_seconds Time\n\
             a_time_seconds_bucket{{{label},le=\"0.0\"}} 0\na_time_seconds_bucket{{{label},le=\"1e-5\"}} 0\n\
             a_time_seconds_bucket{{{label},le=\"5e-5\"}} 3\n"
        );
        assert!(text.starts_with(&begin), "{text}");
        let end = format!(
            "a_time_seconds_bucket{{{label},le=\"100.0\"}} 3\na_time_seconds_bucket{{{label},le=\"+Inf\"}} 4\n\
             a_time_seconds_sum{{{label}}} 200.5\na_time_seconds_count{{{label}}} 4\n"
        );
        assert!(text.ends_with(&end), "{text}");
    }

    #[test]
    fn openmetrics_has_unit_and_eof() {
        let text = text(&families(), TextFormat::OpenMetrics);
        assert!(text.starts_with("# TYPE a_io_bytes counter\n# UNIT a_io_bytes bytes\n"), "{text}");
        assert!(text.contains("\na_io_bytes_total{") && text.ends_with("\n# EOF\n"), "{text}");
    }
}
