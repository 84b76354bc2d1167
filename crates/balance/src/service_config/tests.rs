//! Service configs as data: texts, and what they mean or why they are invalid.

mod fuzz;
mod methods;
mod policies;
mod txt;

use serde_json::Value;

use super::*;
use crate::policy::PolicyConfig;

/// Parses without policies of the application.
fn parse(json: &str) -> Result<ServiceConfig, ServiceConfigError> {
    ServiceConfig::parse(json, &PolicyRegistry::default())
}

/// Checks that a text means the same as a config made by setters.
fn check(json: &str, expected: ServiceConfig) {
    assert_eq!(parse(json), Ok(expected), "{json}");
}

/// Checks the error of a text, without the words that all errors start with.
fn check_error(json: &str, expected: &str) {
    let error = parse(json).expect_err(json).to_string();
    assert_eq!(error.strip_prefix("service config, "), Some(expected), "{json}");
}

/// Checks the warnings about a text, each as its field and the similar name.
fn check_unknown(json: &str, expected: &[(&str, Option<&str>)]) {
    let unknown = ServiceConfig::unknown_fields(json, &PolicyRegistry::default()).expect(json);
    let unknown: Vec<_> = unknown.iter().map(|field| (&*field.field, field.similar.as_deref())).collect();
    assert_eq!(unknown, expected, "{json}");
}

#[test]
fn unknown_and_null_fields_are_ignored() {
    let empty = ServiceConfig::default;
    check("{}", empty());
    check(r#"{"method_config": 5, "MethodConfig": 5, "else": [{}]}"#, empty());
    check(
        r#"{"loadBalancingPolicy": null, "loadBalancingConfig": null, "methodConfig": null, "retryThrottling": null,
            "healthCheckConfig": null, "connectionScaling": null}"#,
        empty(),
    );
    check(r#"{"methodConfig": []}"#, empty());
}

#[test]
fn a_text_that_is_not_an_object_is_invalid() {
    for (json, found) in [("[]", "[]"), ("null", "nothing"), ("7", "7")] {
        let expected = format!("service config: expected an object, found {found}");
        assert_eq!(parse(json).expect_err(json).to_string(), expected);
    }
}

#[test]
fn unknown_fields_are_listed_for_warnings() {
    for json in ["{}", r#"{"methodConfig": null, "loadBalancingConfig": [{"round_robin": {}}]}"#] {
        check_unknown(json, &[]);
    }
    check_unknown(
        r#"{"methodConfg": [{"x": 1}], "zzz": 1, "methodConfig": [{"name": [{"servce": "s"}], "timout": null,
            "retryPolicy": {"maxAttempts": 2, "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 2,
                "retryableStatusCodes": [14], "max_attempts": 3}}]}"#,
        &[
            ("methodConfg", Some("methodConfig")),
            ("methodConfig[0].name[0].servce", Some("service")),
            ("methodConfig[0].retryPolicy.max_attempts", Some("maxAttempts")),
            ("methodConfig[0].timout", Some("timeout")),
            ("zzz", None),
        ],
    );
    // Only the selected policy is read.
    check_unknown(
        r#"{"loadBalancingConfig": [{"xds": {"a": 1}}, {"random_subsetting": {"subsetSize": 1, "subset": 1,
            "childPolicy": [{"round_robin": {"choiceCount": 2}}]}}, {"pick_first": {"b": 1}}]}"#,
        &[
            ("loadBalancingConfig[1].random_subsetting.childPolicy[0].round_robin.choiceCount", None),
            ("loadBalancingConfig[1].random_subsetting.subset", Some("subsetSize")),
        ],
    );
    let own = PolicyRegistry::default().register("own", |_| Err("no".to_owned()));
    assert!(ServiceConfig::unknown_fields(r#"{"loadBalancingConfig": [{"own": {}}]}"#, &own).is_err());
}

#[test]
fn a_duplicate_field_is_invalid() {
    let json = r#"{"loadBalancingConfig": [{"pick_first": {}}], "loadBalancingConfig": []}"#;
    let expected =
        "the service config is not JSON: duplicate field `loadBalancingConfig` at line 1 column 67";
    assert_eq!(parse(json).expect_err(json).to_string(), expected);
}

#[test]
fn a_text_that_is_not_json_is_invalid() {
    let deep = "[".repeat(1_000_000);
    let fall = r#"{"methodConfig": [{"waitForReady": fall}]}"#;
    for text in ["", "{", "{} {}", "{'a': 1}", r#"{"a": 1,}"#, "{\"a\": \"\u{0}\"}", fall, &deep] {
        let error = parse(text).expect_err(text);
        assert!(matches!(error, ServiceConfigError::Syntax(_)), "{error}");
        assert!(error.to_string().starts_with("the service config is not JSON: "), "{error}");
    }
}

#[test]
fn found_values_are_shortened() {
    let error = parse(&format!(r#""{}""#, "ü".repeat(100))).unwrap_err().to_string();
    let shown = format!("service config: expected an object, found \"{}…", "ü".repeat(79));
    assert_eq!(error, shown);
}

#[test]
fn retry_throttling_is_validated_as_in_a6() {
    let throttling = |max_tokens, token_ratio_millis| {
        ServiceConfig::default().retry_throttling(RetryThrottling { max_tokens, token_ratio_millis })
    };
    check(r#"{"retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}}"#, throttling(10, 100));
    check(r#"{"retryThrottling": {"maxTokens": 2, "tokenRatio": 1.0}}"#, throttling(2, 1000));
    check(r#"{"retryThrottling": {"maxTokens": "1000", "tokenRatio": "0.5466"}}"#, throttling(1000, 546));
    check(r#"{"retryThrottling": {"maxTokens": 1.0, "tokenRatio": 1.001}}"#, throttling(1, 1001));
    check(r#"{"retryThrottling": {"maxTokens": 1, "tokenRatio": 1e-3}}"#, throttling(1, 1));

    let max =
        |found| format!("retryThrottling.maxTokens: expected a whole number from 1 to 1000, found {found}");
    check_error(r#"{"retryThrottling": {}}"#, &max("nothing"));
    check_error(r#"{"retryThrottling": {"maxTokens": 0, "tokenRatio": 1}}"#, &max("0"));
    check_error(r#"{"retryThrottling": {"maxTokens": -2, "tokenRatio": 1}}"#, &max("-2"));
    check_error(r#"{"retryThrottling": {"maxTokens": 1001, "tokenRatio": 1}}"#, &max("1001"));
    check_error(r#"{"retryThrottling": {"maxTokens": 2.5, "tokenRatio": 1}}"#, &max("2.5"));
    check_error(r#"{"retryThrottling": {"maxTokens": "NaN", "tokenRatio": 1}}"#, &max("\"NaN\""));
    let ratio =
        |found| format!("retryThrottling.tokenRatio: expected a number greater than 0, found {found}");
    check_error(r#"{"retryThrottling": {"maxTokens": 2}}"#, &ratio("nothing"));
    check_error(r#"{"retryThrottling": {"maxTokens": 2, "tokenRatio": 0}}"#, &ratio("0"));
    check_error(r#"{"retryThrottling": {"maxTokens": 2, "tokenRatio": -1}}"#, &ratio("-1"));
    check_error(r#"{"retryThrottling": {"maxTokens": 2, "tokenRatio": []}}"#, &ratio("[]"));
    check_error(r#"{"retryThrottling": {"maxTokens": 2, "tokenRatio": "inf"}}"#, &ratio("\"inf\""));
    check_error(
        r#"{"retryThrottling": {"maxTokens": 2, "tokenRatio": 0.0009}}"#,
        "retryThrottling.tokenRatio: expected a number, 0.001 or more, found 0.0009",
    );
    check_error(r#"{"retryThrottling": 5}"#, "retryThrottling: expected an object, found 5");
}

#[test]
fn health_checks_need_a_service_name() {
    // gRFC A17. An empty name asks for the health of the whole server.
    check(r#"{"healthCheckConfig": {"serviceName": "shop"}}"#, ServiceConfig::default().health_check("shop"));
    check(r#"{"healthCheckConfig": {"serviceName": ""}}"#, ServiceConfig::default().health_check(""));
    check(r#"{"healthCheckConfig": {}}"#, ServiceConfig::default());
    check_error(
        r#"{"healthCheckConfig": {"serviceName": 5}}"#,
        "healthCheckConfig.serviceName: expected a string, found 5",
    );
    check_error(r#"{"healthCheckConfig": []}"#, "healthCheckConfig: expected an object, found []");
}

#[test]
fn connection_scaling_is_a_positive_number() {
    // gRFC A105.
    let scaling =
        |value: &str| format!(r#"{{"connectionScaling": {{"maxConnectionsPerSubchannel": {value}}}}}"#);
    for (value, expected) in [("7", 7), (r#""7""#, 7), ("7.0", 7), ("4294967295", u32::MAX)] {
        check(&scaling(value), ServiceConfig::default().max_connections_per_subchannel(expected));
    }
    check(
        r#"{"connectionScaling": {"maxConnectionsPerSubchannel": null, "else": []}}"#,
        ServiceConfig::default(),
    );
    check(r#"{"connectionScaling": {}}"#, ServiceConfig::default());
    for value in ["0", "-1", "1.5", "4294967296", r#""many""#, "true", "[]", "1e+300"] {
        check_error(
            &scaling(value),
            &format!(
                "connectionScaling.maxConnectionsPerSubchannel: expected a whole number from 1 to 4294967295, \
                 found {value}"
            ),
        );
    }
    check_error(r#"{"connectionScaling": 3}"#, "connectionScaling: expected an object, found 3");
}
