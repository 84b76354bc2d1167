use super::*;
use crate::policy::mix;

/// Texts that have all fields. The last is the list of a TXT record.
const VALID: [&str; 3] = [
    r#"{"loadBalancingPolicy": "round_robin", "loadBalancingConfig": [{"xds": {}}, {"outlier_detection": {
        "interval": "1.5s", "maxEjectionPercent": 50, "successRateEjection": {"stdevFactor": 1900},
        "failurePercentageEjection": {"threshold": 85}, "childPolicy": [{"random_subsetting": {"subsetSize": 4,
        "childPolicy": [{"ring_hash": {"minRingSize": 8, "maxRingSize": 16, "requestHashHeader": "user"}}]}}]}}],
       "healthCheckConfig": {"serviceName": "s"}, "connectionScaling": {"maxConnectionsPerSubchannel": 2}}"#,
    r#"{"methodConfig": [{"name": [{"service": "s", "method": "m"}, {}], "waitForReady": true, "timeout": "1.5s",
        "maxRequestMessageBytes": 4, "maxResponseMessageBytes": "8", "retryPolicy": {"maxAttempts": 4,
        "initialBackoff": "0.1s", "maxBackoff": "1s", "backoffMultiplier": 1.6, "retryableStatusCodes": [14]}},
        {"name": [{"service": "t"}], "hedgingPolicy": {"maxAttempts": 3, "hedgingDelay": "0.5s",
        "nonFatalStatusCodes": ["ABORTED"]}}], "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1}}"#,
    r#"[{"clientLanguage": ["go"], "serviceConfig": {}}, {"percentage": 50, "clientHostname": ["host", "other"],
        "serviceConfig": {"methodConfig": [{"timeout": "1.5s"}]}}]"#,
];

/// Number of values in the longer of the texts.
const VALUES_IN_TEXT: usize = 31;

/// Values that replace others.
const VALUES: [&str; 22] = [
    "null",
    "true",
    "{}",
    "[]",
    "[{}]",
    "[null]",
    "\"\"",
    "\"1.5s\"",
    "\"s\"",
    "\"-1s\"",
    "-1",
    "0",
    "2",
    "0.1",
    "1e308",
    "1e-320",
    "18446744073709551616",
    "\"7\"",
    "\"NaN\"",
    "\"ü\"",
    "\"UNAVAILABLE\"",
    "[{\"pick_first\": {}}]",
];

/// Pieces of text that replace others.
const PIECES: [&str; 9] = ["", "{", "}", "[", "]", ",", ":", "\"", "\\u0000"];

/// Returns a valid text after one to three mutations: two in three texts have other values, one in three other pieces.
fn mutated(seed: u64) -> String {
    let mut state = seed;
    let mut random = |bound: usize| {
        state = mix(state);
        (state % bound as u64) as usize
    };
    let valid = VALID[random(VALID.len())];
    let (mutations, pieces) = (1 + random(3), random(3) == 0);
    if pieces {
        let mut text = valid.to_owned();
        for _ in 0..mutations {
            let start = boundary(&text, random(text.len() + 1));
            let end = boundary(&text, (start + random(8)).min(text.len()));
            text.replace_range(start..end, PIECES[random(PIECES.len())]);
        }
        return text;
    }
    let mut value: Value = serde_json::from_str(valid).unwrap();
    for _ in 0..mutations {
        let by = serde_json::from_str(VALUES[random(VALUES.len())]).unwrap();
        replace(&mut value, &mut random(VALUES_IN_TEXT), &by);
    }
    value.to_string()
}

/// Returns the first boundary of a character from a position on.
fn boundary(text: &str, position: usize) -> usize {
    (position..=text.len()).find(|&at| text.is_char_boundary(at)).unwrap()
}

/// Replaces the value at a position in depth-first order.
fn replace(value: &mut Value, position: &mut usize, by: &Value) {
    let here = *position == 0;
    *position = position.wrapping_sub(1);
    match value {
        _ if here => *value = by.clone(),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, position, by)),
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, position, by)),
        _ => {}
    }
}

#[test]
fn no_text_panics_and_every_error_names_a_field() {
    let (mut valid, mut syntax, mut field) = (0, 0, 0);
    for seed in 0..100_000 {
        let text = mutated(seed);
        let result = if text.starts_with('[') { parse_record(&text) } else { parse(&text) };
        match result {
            Ok(config) => {
                valid += 1;
                check_promises(&config, &text);
            }
            Err(ServiceConfigError::Syntax(_)) => syntax += 1,
            Err(
                ServiceConfigError::Field { field: path, .. }
                | ServiceConfigError::UnsupportedPolicy { field: path, .. },
            ) => {
                field += 1;
                let first = path.split(['.', '[']).next().unwrap();
                assert!(first.is_empty() || text.contains(&format!("\"{first}\"")), "{path} in {text}");
            }
            Err(error) => panic!("{error}: {text}"),
        }
    }
    // All three outcomes are frequent, or the mutations are useless.
    assert!(valid > 10_000 && syntax > 10_000 && field > 10_000, "{valid}, {syntax}, {field}");
}

/// Parses the list of a TXT record.
fn parse_record(list: &str) -> Result<ServiceConfig, ServiceConfigError> {
    let client = TxtClient { host_name: "host", random_percent: 49 };
    let chosen = ServiceConfig::json_from_txt(&format!("grpc_config={list}"), client);
    let parse = |json: String| ServiceConfig::parse(&json, &PolicyRegistry::default());
    chosen?.map_or_else(|| Ok(ServiceConfig::default()), parse)
}

/// Checks what the documentation of the types promises.
fn check_promises(config: &ServiceConfig, text: &str) {
    for method in config.method_configs() {
        let valid = match &method.attempts {
            None => true,
            Some(AttemptPolicy::Hedging(policy)) => policy.max_attempts >= 2,
            Some(AttemptPolicy::Retry(policy)) => {
                policy.max_attempts >= 2
                    && !policy.initial_backoff.is_zero()
                    && !policy.max_backoff.is_zero()
                    && policy.backoff_multiplier > 0.0
                    && !policy.retryable_codes.is_empty()
            }
        };
        assert!(valid, "{text}");
        for name in &method.names {
            assert_eq!(config.method(&name.service, &name.method), Some(method), "{text}");
        }
    }
    let throttling = config.retry_throttling.is_none_or(|throttling| {
        (1..=1000).contains(&throttling.max_tokens) && throttling.token_ratio_millis > 0
    });
    assert!(throttling && config.max_connections_per_subchannel != Some(0), "{text}");
}
