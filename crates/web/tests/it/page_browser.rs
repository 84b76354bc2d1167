//! The docs page in a browser: a script calls methods of all four types, which the service with the page handles.

use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

use crate::browser::{Browser, read};
use crate::openapi::assert_golden;
use crate::page_library::Site;

const PROBE: &str = include_str!("page_probe.js");

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn all_four_types_of_calls_on_a_wide_light_page() {
    check("wide", 1280, false).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Chromium"]
async fn all_four_types_of_calls_on_a_narrow_dark_page() {
    check("narrow", 390, true).await;
}

async fn check(name: &str, width: u32, is_dark: bool) {
    let (site, port, mut results) = Site::start(PROBE).await;
    let browser = Browser::open(name, &format!("http://127.0.0.1:{port}/docs"), width, is_dark);
    let facts = read(&mut results).await;
    drop(browser);
    let fact =
        |name: &str| facts.get(name).map_or_else(|| panic!("nothing of {name}: {facts:#?}"), String::as_str);

    assert_eq!((fact("width"), fact("dark")), (&*width.to_string(), if is_dark { "true" } else { "false" }));
    for (name, value) in facts.iter().filter(|(name, _)| name.contains("sticks out")) {
        assert_eq!(value, "0", "{name}");
    }
    assert!(fact("front").starts_with("GetBook ListBooks CreateBook"), "{}", fact("front"));
    assert_eq!((fact("focus"), fact("found"), fact("menu")), ("filter", "WatchBooks", "false"));
    assert_eq!(fact("theme changes"), "true");

    assert_eq!((fact("GetBook ended"), fact("GetBook error")), ("OK", ""));
    assert_eq!(
        fact("GetBook messages"),
        r#"{"name":"it's <b>","subtitle":"me, 2","title":"<img src=x onerror=alert(1)>"}"#
    );
    assert!(fact("GetBook trailers").contains("x-cost12"), "{}", fact("GetBook trailers"));
    assert_eq!((fact("elements from texts"), fact("no JSON")), ("0", "true"));
    assert_eq!(fact("no metadata"), "Invalid metadata: no colon; use “name: value”.");

    assert_eq!((fact("UpdateBook ended"), fact("UpdateBook messages")), ("NOT_FOUND", ""));
    assert!(fact("UpdateBook error").starts_with("no book is called so"), "{}", fact("UpdateBook error"));

    assert_eq!((fact("WatchBooks seen"), fact("WatchBooks ended")), ("runs", "OK"));
    assert_eq!(fact("WatchBooks messages"), r#"{"book":{"title":"One"}} {"book":{"title":"Two"}}"#);
    assert!(fact("WatchBooks trailers").contains("x-cost3"));

    assert_eq!((fact("ImportBooks ended"), fact("ImportBooks messages")), ("OK", r#"{"count":"2"}"#));
    assert_eq!(fact("Ask ended"), "RESOURCE_EXHAUSTED");
    assert_eq!(fact("Ask messages"), r#"{"text":"Where?"} {"text":"When?"}"#);
    assert!(fact("Ask error").contains("enough for today"));
    assert!(fact("Ask trailers").contains("x-cost4"));

    assert_eq!(
        (fact("Stopped ended"), fact("Stopped messages")),
        ("CANCELED", r#"{"book":{"title":"One"}}"#)
    );
    assert_eq!(fact("Late ended"), "DEADLINE_EXCEEDED");
    assert_eq!(fact("LockBook ended"), "UNIMPLEMENTED");
    let (lost, why) = (fact("LockBook error"), "nothing found at /library.v1.Library/LockBook");
    assert!(lost.contains("HTTP 404: ") && lost.contains(why), "{lost}");

    // The stopped and the late call have ended at the server.
    for _ in 0..500 {
        if site.released() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(site.released(), 2);

    // A step of `cargo xtask test` validates this document.
    assert_golden(&serde_json::from_str(fact("openapi")).unwrap());
    check_commands(&facts, port, &site);
}

fn check_commands(facts: &HashMap<String, String>, port: u16, site: &Site) {
    assert_eq!(
        facts["GetBook curl"],
        format!(
            "curl 'http://127.0.0.1:{port}/library.v1.Library/GetBook' \\\n  -H 'content-type: application/json' \\\n  \
             -H 'x-who: me' \\\n  -H 'x-two: 2' \\\n  -H 'connect-timeout-ms: 60000' \\\n  \
             -d '{{\"name\":\"it'\\''s <b>\"}}'"
        )
    );
    assert_eq!(
        facts["GetBook grpcurl"],
        format!(
            "grpcurl -plaintext \\\n  -max-time 60 \\\n  -H 'x-who: me' \\\n  -H 'x-two: 2' \\\n  \
             -d '{{\"name\":\"it'\\''s <b>\"}}' \\\n  127.0.0.1:{port} library.v1.Library/GetBook"
        )
    );
    assert_eq!(
        facts["GetBook thalweg call"],
        format!(
            "thalweg call http://127.0.0.1:{port} library.v1.Library/GetBook \\\n  --timeout 60000ms \\\n  \
             -H 'x-who: me' \\\n  -H 'x-two: 2' \\\n  -d '{{\"name\":\"it'\\''s <b>\"}}'"
        )
    );
    assert!(facts["ImportBooks grpcurl"].contains("-d '{\"title\":\"One\"}\n{\"title\":\"Zwei ü\"}'"));
    // The input piped into curl is what the page has sent.
    let (printf, curl) = facts["ImportBooks curl"].split_once(" |\n").unwrap();
    assert!(curl.contains("--data-binary @-") && curl.contains("application/connect+json"), "{curl}");
    let printed = Command::new("sh").args(["-c", printf]).output().unwrap();
    assert_eq!(printed.stdout, site.body("/library.v1.Library/ImportBooks"));
}
