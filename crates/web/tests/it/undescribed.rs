//! Warnings about services without descriptors.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use thalweg_web::Web;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::library::echo_with;

/// The fields of warnings, one line each.
#[derive(Clone, Default)]
struct Warnings(Arc<Mutex<Vec<String>>>);

struct Line<'l>(&'l mut String);

impl Visit for Line<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        write!(self.0, "{}={value:?} ", field.name()).unwrap();
    }
}

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = String::new();
        event.record(&mut Line(&mut line));
        self.0.lock().unwrap().push(line);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn missing_descriptors_are_logged_at_startup() {
    let check = |web: Web, expected: &[&str]| {
        let warnings = Warnings::default();
        tracing::subscriber::with_default(warnings.clone(), || {
            echo_with(web, crate::echo::descriptors().to_vec(), &["echo.Echo/One", "a.B/One", "a.B/Two"])
                .unwrap()
        });
        let logged = warnings.0.lock().unwrap();
        assert_eq!(logged.len(), expected.len(), "{logged:?}");
        for (line, service) in logged.iter().zip(expected) {
            assert!(line.contains(&format!("service={service:?} ")), "{line}");
            assert!(line.contains("embed_descriptors"), "{line}");
        }
    };
    check(Web::new(), &["a.B"]);
    check(Web::new().transcoding(false), &[]);
    check(Web::new().transcoding(false).docs(true), &["a.B"]);
}
