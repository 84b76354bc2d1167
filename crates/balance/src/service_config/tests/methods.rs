use std::time::Duration;

use thalweg_core::Code;

use super::*;
use crate::code_set::CodeSet;
use crate::retry::{HedgingPolicy, RetryPolicy};

/// Checks the settings of one method config, without its names.
fn check_method(members: &str, expected: MethodConfig) {
    let config = ServiceConfig::default().methods([expected]).unwrap();
    check(&format!(r#"{{"methodConfig": [{{{members}}}]}}"#), config);
}

/// Checks the error of one method config.
fn check_method_error(members: &str, expected: &str) {
    check_error(&format!(r#"{{"methodConfig": [{{{members}}}]}}"#), &format!("methodConfig[0]{expected}"));
}

#[test]
fn settings_of_methods_are_read() {
    let unset = MethodConfig::default;
    check_method("", unset());
    check_method(
        r#""name": null, "waitForReady": null, "timeout": null, "maxRequestMessageBytes": null,
           "maxResponseMessageBytes": null, "retryPolicy": null, "hedgingPolicy": null, "else": {}"#,
        unset(),
    );
    check_method(r#""waitForReady": true"#, unset().wait_for_ready(true));
    check_method(r#""waitForReady": false"#, unset().wait_for_ready(false));
    check_method(r#""timeout": "1s""#, unset().timeout(Duration::from_secs(1)));
    check_method(r#""timeout": "0s""#, unset().timeout(Duration::ZERO));
    check_method(r#""maxRequestMessageBytes": 1024"#, unset().max_request_message_bytes(1024));
    check_method(r#""maxRequestMessageBytes": 0"#, unset().max_request_message_bytes(0));
    check_method(r#""maxResponseMessageBytes": "2048""#, unset().max_response_message_bytes(2048));
    check_method(
        r#""name": [{"service": "s", "method": "m"}, {"service": "t", "method": ""}, {"service": null}]"#,
        MethodConfig::new([MethodName::new("s", "m"), MethodName::service("t"), MethodName::all()]),
    );
}

#[test]
fn invalid_settings_of_methods_are_named() {
    check_error(r#"{"methodConfig": 5}"#, "methodConfig: expected a list, found 5");
    check_error(r#"{"methodConfig": [5]}"#, "methodConfig[0]: expected an object, found 5");
    check_error(r#"{"methodConfig": [{}, null]}"#, "methodConfig[1]: expected an object, found nothing");
    check_method_error(r#""waitForReady": "true""#, ".waitForReady: expected true or false, found \"true\"");
    check_method_error(r#""timeout": "3c""#, ".timeout: expected a duration such as \"1.5s\", found \"3c\"");
    check_method_error(
        r#""timeout": "-1s""#,
        ".timeout: expected a duration such as \"1.5s\", found \"-1s\"",
    );
    check_method_error(r#""timeout": 3"#, ".timeout: expected a duration such as \"1.5s\", found 3");
    for (field, value) in [("maxRequestMessageBytes", "-1"), ("maxResponseMessageBytes", "4294967296")] {
        check_method_error(
            &format!(r#""{field}": {value}"#),
            &format!(".{field}: expected a whole number from 0 to 4294967295, found {value}"),
        );
    }
    check_method_error(r#""name": {}"#, ".name: expected a list, found {}");
    check_method_error(r#""name": ["s"]"#, ".name[0]: expected an object, found \"s\"");
    check_method_error(r#""name": [{"service": 5}]"#, ".name[0].service: expected a string, found 5");
    check_method_error(r#""name": [{}, {"method": []}]"#, ".name[1].method: expected a string, found []");
}

#[test]
fn retry_policy_is_validated_as_in_a6() {
    let policy = RetryPolicy {
        max_attempts: 4,
        initial_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(1),
        backoff_multiplier: 2.0,
        retryable_codes: [Code::Unavailable].into_iter().collect(),
    };
    // Members of the policy, each of which a case replaces.
    let members = [
        ("maxAttempts", "4"),
        ("initialBackoff", "\".1s\""),
        ("maxBackoff", "\"1s\""),
        ("backoffMultiplier", "2"),
        ("retryableStatusCodes", "[\"UNAVAILABLE\"]"),
    ];
    let with = |field: &str, value: &str| {
        let members = members.map(|(name, valid)| {
            let value = if name == field { value } else { valid };
            format!("\"{name}\": {value}")
        });
        format!(r#""retryPolicy": {{{}}}"#, members.join(", "))
    };
    let valid = |field: &str, value: &str, change: fn(&mut RetryPolicy)| {
        let mut expected = policy.clone();
        change(&mut expected);
        check_method(&with(field, value), MethodConfig::default().retry(expected));
    };
    valid("", "", |_| {});
    valid("maxAttempts", "2", |policy| policy.max_attempts = 2);
    valid("maxAttempts", "5", |policy| policy.max_attempts = 5);
    valid("maxAttempts", "6", |policy| policy.max_attempts = 6);
    valid("maxAttempts", "4294967295", |policy| policy.max_attempts = u32::MAX);
    valid("initialBackoff", "\"0.000000001s\"", |policy| policy.initial_backoff = Duration::from_nanos(1));
    valid("maxBackoff", "\"120s\"", |policy| policy.max_backoff = Duration::from_secs(120));
    valid("backoffMultiplier", "\"1.6\"", |policy| policy.backoff_multiplier = 1.6);
    valid("backoffMultiplier", "0.5", |policy| policy.backoff_multiplier = 0.5);
    valid("retryableStatusCodes", "[14]", |_| {});
    valid("retryableStatusCodes", "[\"unavailable\", 14.0]", |_| {});
    valid("retryableStatusCodes", "[\"ABORTED\", 16, 0]", |policy| {
        policy.retryable_codes = [Code::Ok, Code::Aborted, Code::Unauthenticated].into_iter().collect();
    });

    let invalid = |field: &str, expected: &str, values: &[&str]| {
        for value in values {
            let found = if *value == "null" { "nothing" } else { value };
            let error = format!(".retryPolicy.{field}: expected {expected}, found {found}");
            check_method_error(&with(field, value), &error);
        }
    };
    invalid(
        "maxAttempts",
        "a whole number from 2 to 4294967295",
        &["1", "0", "-1", "2.5", "\"FOO\"", "null"],
    );
    let duration = r#"a positive duration such as "1.5s""#;
    invalid("initialBackoff", duration, &["\"0s\"", "\"1sec\"", "\"-1s\"", "1", "null"]);
    invalid("maxBackoff", duration, &["\"0s\"", "\"120sec\"", "\"0.0000000001s\"", "{}", "null"]);
    invalid("backoffMultiplier", "a number greater than 0", &["0", "-0.5", "[]", "\"x\"", "null"]);
    invalid("retryableStatusCodes", "a list of at least one status code", &["[]"]);
    invalid("retryableStatusCodes", "a list", &["\"UNAVAILABLE\"", "14", "null"]);
    let code = "the name or number of a status code";
    for found in ["\"FOO\"", "\"14\"", "17", "-1", "13.5", "true", "[]"] {
        let error = format!(".retryPolicy.retryableStatusCodes[1]: expected {code}, found {found}");
        check_method_error(&with("retryableStatusCodes", &format!("[14, {found}]")), &error);
    }
    check_method_error(r#""retryPolicy": 5"#, ".retryPolicy: expected an object, found 5");
}

#[test]
fn hedging_policy_is_validated_as_in_a6() {
    let valid = |members: &str, max_attempts: u32, hedging_delay: Duration, non_fatal_codes: CodeSet| {
        let expected = HedgingPolicy { max_attempts, hedging_delay, non_fatal_codes };
        let members = format!(r#""hedgingPolicy": {{{members}}}"#);
        check_method(&members, MethodConfig::default().hedging(expected));
    };
    let codes = [Code::Unavailable, Code::Internal, Code::Aborted].into_iter().collect();
    let listed = r#""nonFatalStatusCodes": ["UNAVAILABLE", "INTERNAL", "ABORTED"]"#;
    let half_second = Duration::from_millis(500);
    valid(&format!(r#""maxAttempts": 4, "hedgingDelay": ".5s", {listed}"#), 4, half_second, codes);
    valid(&format!(r#""maxAttempts": 4, "hedgingDelay": "0s", {listed}"#), 4, Duration::ZERO, codes);
    valid(r#""maxAttempts": 2"#, 2, Duration::ZERO, CodeSet::default());
    valid(r#""maxAttempts": 100, "nonFatalStatusCodes": []"#, 100, Duration::ZERO, CodeSet::default());

    let attempts = ".hedgingPolicy.maxAttempts: expected a whole number from 2 to 4294967295, found";
    check_method_error(r#""hedgingPolicy": {}"#, &format!("{attempts} nothing"));
    check_method_error(r#""hedgingPolicy": {"maxAttempts": 1}"#, &format!("{attempts} 1"));
    check_method_error(
        r#""hedgingPolicy": {"maxAttempts": 2, "hedgingDelay": "-1s"}"#,
        ".hedgingPolicy.hedgingDelay: expected a duration such as \"1.5s\", found \"-1s\"",
    );
    check_method_error(
        r#""hedgingPolicy": {"maxAttempts": 2, "nonFatalStatusCodes": ["NONE"]}"#,
        ".hedgingPolicy.nonFatalStatusCodes[0]: expected the name or number of a status code, found \"NONE\"",
    );
}

#[test]
fn retries_exclude_hedging() {
    check_method_error(
        r#""hedgingPolicy": {"maxAttempts": 2},
           "retryPolicy": {"maxAttempts": 2, "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1,
                           "retryableStatusCodes": [14]}"#,
        ": expected retryPolicy or hedgingPolicy, found both",
    );
}

#[test]
fn the_most_specific_name_wins() {
    let config = r#"{"methodConfig": [
        {"name": [{}], "timeout": "1s"},
        {"name": [{"service": "shop.Cart"}, {"service": "shop.Stock", "method": "Get"}], "timeout": "2s"},
        {"name": [{"service": "shop.Cart", "method": "Add"}], "timeout": "3s"},
        {"timeout": "4s"}
    ]}"#;
    let config = parse(config).unwrap();
    let check = |service: &str, method: &str, secs: u64| {
        let timeout = config.method(service, method).and_then(|config| config.timeout);
        assert_eq!(timeout, Some(Duration::from_secs(secs)), "{service}/{method}");
    };
    check("shop.Cart", "Add", 3);
    check("shop.Cart", "Remove", 2);
    check("shop.Cart", "add", 2);
    check("shop.Stock", "Get", 2);
    check("shop.Stock", "Put", 1);
    check("shop", "Add", 1);
    check("", "Add", 1);
    assert_eq!(config.method_configs().len(), 4);
}

#[test]
fn without_a_default_other_methods_have_no_settings() {
    let config =
        parse(r#"{"methodConfig": [{"name": [{"service": "s", "method": "m"}]}, {"timeout": "1s"}]}"#)
            .unwrap();
    assert!(config.method("s", "m").is_some());
    assert_eq!((config.method("s", "n"), config.method("t", "m")), (None, None));
}

#[test]
fn a_name_occurs_once() {
    let check_names = |first: &str, second: &str, place: &str, found: &str| {
        let json = format!(r#"{{"methodConfig": [{{"name": [{first}]}}, {{"name": [{second}]}}]}}"#);
        let expected = "expected a name that occurs once (methodConfig[0] has it, too)";
        check_error(&json, &format!("methodConfig{place}: {expected}, found {found}"));
    };
    let method = r#"{ "service": "s", "method": "m" }"#;
    check_names(method, method, "[1].name[0]", method);
    check_names(&format!("{method}, {method}"), "", "[0].name[1]", method);
    let service = r#"{ "service": "s" }"#;
    check_names(service, r#"{}, {"service": "s", "method": null}"#, "[1].name[1]", service);
    check_names("{}", r#"{"service": "", "method": ""}"#, "[1].name[0]", "{}");
}

#[test]
fn a_method_needs_a_service() {
    for name in
        [r#"{"method": "m"}"#, r#"{"service": "", "method": "m"}"#, r#"{"service": null, "method": "m"}"#]
    {
        check_method_error(
            &format!(r#""name": [{name}]"#),
            r#".name[0]: expected a method with a service, found { "method": "m" }"#,
        );
    }
    let error = ServiceConfig::default().methods([MethodConfig::new([MethodName::new("", "m")])]);
    assert!(
        matches!(error, Err(ServiceConfigError::Field { field, .. }) if field == "methodConfig[0].name[0]")
    );
}
