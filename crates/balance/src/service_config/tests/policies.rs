use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::policy::{
    FailurePercentageEjection, LeastRequestConfig, OutlierDetectionConfig, PickFirstConfig, Policy,
    PolicyFactory, RandomSubsettingConfig, RingHashConfig, RoundRobin, SuccessRateEjection,
    WeightedRoundRobinConfig,
};

/// Checks a list of policies.
fn check_list(list: &str, expected: PolicyConfig) {
    check(
        &format!(r#"{{"loadBalancingConfig": [{list}]}}"#),
        ServiceConfig::default().load_balancing(expected),
    );
}

/// Checks the error of a list of policies.
fn check_list_error(list: &str, expected: &str) {
    check_error(
        &format!(r#"{{"loadBalancingConfig": [{list}]}}"#),
        &format!("loadBalancingConfig{expected}"),
    );
}

/// Checks the error of the config of one policy.
fn check_policy_error(policy: &str, config: &str, expected: &str) {
    check_list_error(&format!(r#"{{"{policy}": {config}}}"#), &format!("[0].{policy}{expected}"));
}

#[test]
fn the_first_supported_policy_is_selected() {
    check_list(r#"{"round_robin": {}}, {"pick_first": {}}"#, PolicyConfig::RoundRobin);
    check_list(r#"{"xds": {"a": 1}}, {"grpclb": 5}, {"round_robin": {"else": 1}}"#, PolicyConfig::RoundRobin);
    // Entries after the selected one are not validated, as in gRPC core and grpc-go.
    check_list(r#"{"round_robin": {}}, {}, 5, {"pick_first": []}"#, PolicyConfig::RoundRobin);
}

#[test]
fn a_list_without_a_supported_policy_is_invalid() {
    let available = format!("; available: {}", PolicyConfig::NAMES.join(", "));
    let unsupported = |found: &str| format!(": expected a supported policy, found {found}{available}");
    check_list_error("", &unsupported("no policy"));
    check_list_error(r#"{"unknown": {}}"#, &unsupported("unknown"));
    check_list_error(r#"{"xds_experimental": {}}, {"grpclb": {}}"#, &unsupported("xds_experimental, grpclb"));
    check_list_error(
        r#"{"round_robbin": {}}"#,
        ": expected a supported policy, found round_robbin; did you mean `round_robin`?",
    );
    let own = PolicyRegistry::default().register("own", |_| Err("no".to_owned()));
    let error = ServiceConfig::parse(r#"{"loadBalancingConfig": [{"unknown": {}}]}"#, &own).unwrap_err();
    assert!(error.to_string().ends_with(", outlier_detection, own"), "{error}");
    // Names of policies are case-sensitive here; only the legacy field's are not.
    for name in ["ROUND_ROBIN", "round_robin_experimental"] {
        check_list_error(
            &format!(r#"{{"{name}": {{}}}}"#),
            &format!(": expected a supported policy, found {name}; did you mean `round_robin`?"),
        );
    }
}

#[test]
fn an_entry_has_one_policy() {
    check_error(r#"{"loadBalancingConfig": {}}"#, "loadBalancingConfig: expected a list, found {}");
    check_list_error("5", "[0]: expected an object, found 5");
    check_list_error("{}", "[0]: expected an object with one policy, found {}");
    check_list_error(
        r#"{"xds": {}}, {"pick_first":{},"round_robin":{}}"#,
        r#"[1]: expected an object with one policy, found {"pick_first":{},"round_robin":{}}"#,
    );
}

#[test]
fn the_config_of_a_policy_is_an_object() {
    let names = [
        "pick_first",
        "round_robin",
        "weighted_round_robin",
        "least_request",
        "ring_hash",
        "random_subsetting",
    ];
    for policy in names.into_iter().chain(["outlier_detection"]) {
        check_policy_error(policy, "[]", ": expected an object, found []");
        check_policy_error(policy, "null", ": expected an object, found nothing");
    }
}

#[test]
fn the_legacy_field_names_a_policy_in_any_case() {
    let legacy = |policy: &str| format!(r#"{{"loadBalancingPolicy": {policy}}}"#);
    let round_robin = || ServiceConfig::default().load_balancing(PolicyConfig::RoundRobin);
    check(&legacy(r#""round_robin""#), round_robin());
    check(&legacy(r#""ROUND_ROBIN""#), round_robin());
    check(&legacy(r#""pick_first""#), ServiceConfig::default().load_balancing(PolicyConfig::default()));
    check(
        r#"{"loadBalancingPolicy": "pick_first", "loadBalancingConfig": [{"round_robin": {}}]}"#,
        round_robin(),
    );

    check_error(&legacy("1"), "loadBalancingPolicy: expected a string, found 1");
    let available = PolicyConfig::NAMES.join(", ");
    let unknown =
        format!("loadBalancingPolicy: expected a supported policy, found unknown; available: {available}");
    check_error(&legacy(r#""unknown""#), &unknown);
    check_error(
        &legacy(r#""outlier_detection""#),
        "loadBalancingPolicy.childPolicy: expected a list, found nothing",
    );
    check_error(
        r#"{"loadBalancingPolicy": "unknown", "loadBalancingConfig": [{"round_robin": {}}]}"#,
        &unknown,
    );
}

#[test]
fn pick_first_is_read() {
    let config = |shuffle| PolicyConfig::PickFirst(PickFirstConfig::default().shuffle_address_list(shuffle));
    check_list(r#"{"pick_first": {}}"#, config(false));
    check_list(r#"{"pick_first": {"shuffleAddressList": true}}"#, config(true));
    check_list(r#"{"pick_first": {"shuffleAddressList": null}}"#, config(false));
    check_policy_error(
        "pick_first",
        r#"{"shuffleAddressList": 1}"#,
        ".shuffleAddressList: expected true or false, found 1",
    );
}

#[test]
fn weighted_round_robin_is_validated_as_in_a58() {
    let config = WeightedRoundRobinConfig::default;
    let check = |config: &str, expected| {
        check_list(
            &format!(r#"{{"weighted_round_robin": {config}}}"#),
            PolicyConfig::WeightedRoundRobin(expected),
        );
    };
    check("{}", config());
    check(
        r#"{"enableOobLoadReport": true, "oobReportingPeriod": "1s", "blackoutPeriod": "2s",
            "weightExpirationPeriod": "3s", "weightUpdatePeriod": "4s", "errorUtilizationPenalty": 5.5}"#,
        config()
            .enable_oob_load_report(true)
            .oob_reporting_period(Duration::from_secs(1))
            .blackout_period(Duration::from_secs(2))
            .weight_expiration_period(Duration::from_secs(3))
            .weight_update_period(Duration::from_secs(4))
            .error_utilization_penalty(5.5),
    );
    check(r#"{"weightUpdatePeriod": "0.01s"}"#, config().weight_update_period(Duration::from_millis(100)));
    check(r#"{"errorUtilizationPenalty": 0}"#, config().error_utilization_penalty(0.0));

    let check_error =
        |config: &str, expected: &str| check_policy_error("weighted_round_robin", config, expected);
    check_error(
        r#"{"errorUtilizationPenalty": -0.1}"#,
        ".errorUtilizationPenalty: expected a number, 0 or more, found -0.1",
    );
    check_error(r#"{"enableOobLoadReport": 0}"#, ".enableOobLoadReport: expected true or false, found 0");
    for field in ["oobReportingPeriod", "blackoutPeriod", "weightExpirationPeriod", "weightUpdatePeriod"] {
        check_error(
            &format!(r#"{{"{field}": "-1s"}}"#),
            &format!(r#".{field}: expected a duration such as "1.5s", found "-1s""#),
        );
    }
}

#[test]
fn least_request_is_validated_as_in_a48() {
    let config = |count| PolicyConfig::LeastRequest(LeastRequestConfig::default().choice_count(count));
    for name in ["least_request", "least_request_experimental"] {
        check_list(&format!(r#"{{"{name}": {{}}}}"#), config(2));
    }
    for (count, expected) in [("2", 2), ("3", 3), ("\"10\"", 10), ("11", 10), ("4294967295", 10)] {
        check_list(&format!(r#"{{"least_request": {{"choiceCount": {count}}}}}"#), config(expected));
    }
    for count in ["1", "0", "-1", "2.5", "true"] {
        check_policy_error(
            "least_request_experimental",
            &format!(r#"{{"choiceCount": {count}}}"#),
            &format!(".choiceCount: expected a whole number from 2 to 4294967295, found {count}"),
        );
    }
}

#[test]
fn ring_hash_is_validated_as_in_a42_and_a76() {
    let config = RingHashConfig::default;
    let check = |config: &str, expected: RingHashConfig| {
        for name in ["ring_hash", "ring_hash_experimental"] {
            check_list(&format!(r#"{{"{name}": {config}}}"#), PolicyConfig::RingHash(expected.clone()));
        }
    };
    check("{}", config());
    check(r#"{"minRingSize": 1, "maxRingSize": 2}"#, config().min_ring_size(1).max_ring_size(2));
    check(r#"{"minRingSize": "3", "maxRingSize": 3}"#, config().min_ring_size(3).max_ring_size(3));
    check(r#"{"minRingSize": 0, "maxRingSize": 0, "requestHashHeader": ""}"#, config());
    check(r#"{"minRingSize": 4096}"#, config().min_ring_size(4096));
    check(
        r#"{"minRingSize": 8388608, "maxRingSize": 8388608}"#,
        config().min_ring_size(8_388_608).max_ring_size(8_388_608),
    );
    check(r#"{"requestHashHeader": "X-User_1.id"}"#, config().request_hash_header("x-user_1.id"));

    let check_error = |config: &str, expected: &str| check_policy_error("ring_hash", config, expected);
    for field in ["minRingSize", "maxRingSize"] {
        check_error(
            &format!(r#"{{"{field}": 8388609}}"#),
            &format!(".{field}: expected a whole number from 0 to 8388608, found 8388609"),
        );
    }
    let min = |max, found| format!(".minRingSize: expected at most maxRingSize ({max}), found {found}");
    check_error(r#"{"minRingSize": 3, "maxRingSize": 2}"#, &min(2, 3));
    check_error(r#"{"minRingSize": 4097}"#, &min(4096, 4097));
    check_error(r#"{"maxRingSize": 1023}"#, &min(1023, 1024));
    for header in [r#""user-bin""#, r#""user-BIN""#, r#""user id""#, r#"":path""#, r#""ü""#] {
        check_error(
            &format!(r#"{{"requestHashHeader": {header}}}"#),
            &format!(".requestHashHeader: expected the name of a header that is not binary, found {header}"),
        );
    }
    check_error(r#"{"requestHashHeader": 5}"#, ".requestHashHeader: expected a string, found 5");
}

#[test]
fn random_subsetting_is_validated_as_in_a68() {
    for name in ["random_subsetting", "random_subsetting_experimental"] {
        check_list(
            &format!(
                r#"{{"{name}": {{"subsetSize": 3, "childPolicy": [{{"xds": {{}}}}, {{"round_robin": {{}}}}]}}}}"#
            ),
            PolicyConfig::RandomSubsetting(RandomSubsettingConfig::new(3, PolicyConfig::RoundRobin)),
        );
    }
    let check_error =
        |config: &str, expected: &str| check_policy_error("random_subsetting", config, expected);
    let size = ".subsetSize: expected a whole number from 1 to 4294967295, found";
    check_error(r#"{"childPolicy": [{"round_robin": {}}]}"#, &format!("{size} nothing"));
    check_error(r#"{"subsetSize": 0, "childPolicy": [{"round_robin": {}}]}"#, &format!("{size} 0"));
    check_error(r#"{"subsetSize": 1}"#, ".childPolicy: expected a list, found nothing");
    check_error(
        r#"{"subsetSize": 1, "childPolicy": [{"xds": {}}]}"#,
        &format!(
            ".childPolicy: expected a supported policy, found xds; available: {}",
            PolicyConfig::NAMES.join(", ")
        ),
    );
}

#[test]
fn outlier_detection_is_validated_as_in_a50() {
    let config = || OutlierDetectionConfig::new(PolicyConfig::RoundRobin);
    let check = |members: &str, expected: OutlierDetectionConfig| {
        for name in ["outlier_detection", "outlier_detection_experimental"] {
            let default = r#""childPolicy": [{"round_robin": {}}]"#;
            let members =
                if members.contains("childPolicy") { members } else { &format!("{default}{members}") };
            let list = format!(r#"{{"{name}": {{{members}}}}}"#);
            check_list(&list, PolicyConfig::OutlierDetection(expected.clone()));
        }
    };
    check("", config());
    check(
        r#", "interval": "15s", "baseEjectionTime": "20s", "maxEjectionTime": "350s", "maxEjectionPercent": 100"#,
        config()
            .interval(Duration::from_secs(15))
            .base_ejection_time(Duration::from_secs(20))
            .max_ejection_time(Duration::from_secs(350))
            .max_ejection_percent(100),
    );
    check(
        r#", "successRateEjection": {}, "failurePercentageEjection": {}"#,
        config()
            .success_rate_ejection(SuccessRateEjection::default())
            .failure_percentage_ejection(FailurePercentageEjection::default()),
    );
    check(
        r#", "successRateEjection": {"stdevFactor": 1, "enforcementPercentage": 2, "minimumHosts": 3,
                                     "requestVolume": 4},
             "failurePercentageEjection": {"threshold": 5, "enforcementPercentage": 6, "minimumHosts": 7,
                                           "requestVolume": 8}"#,
        config()
            .success_rate_ejection(
                SuccessRateEjection::default()
                    .stdev_factor(1)
                    .enforcement_percentage(2)
                    .minimum_hosts(3)
                    .request_volume(4),
            )
            .failure_percentage_ejection(
                FailurePercentageEjection::default()
                    .threshold(5)
                    .enforcement_percentage(6)
                    .minimum_hosts(7)
                    .request_volume(8),
            ),
    );
    // Zeros are not defaults.
    check(
        r#", "interval": "0s", "baseEjectionTime": "0s", "maxEjectionTime": "0s", "maxEjectionPercent": 0,
             "successRateEjection": {"stdevFactor": 0}, "failurePercentageEjection": {"threshold": 0}"#,
        config()
            .interval(Duration::ZERO)
            .base_ejection_time(Duration::ZERO)
            .max_ejection_time(Duration::ZERO)
            .max_ejection_percent(0)
            .success_rate_ejection(SuccessRateEjection::default().stdev_factor(0))
            .failure_percentage_ejection(FailurePercentageEjection::default().threshold(0)),
    );
    check(
        r#""childPolicy": [{"random_subsetting": {"subsetSize": 2, "childPolicy": [{"pick_first": {}}]}}]"#,
        OutlierDetectionConfig::new(PolicyConfig::RandomSubsetting(RandomSubsettingConfig::new(
            2,
            PolicyConfig::default(),
        ))),
    );
}

#[test]
fn invalid_outlier_detection_is_named() {
    let check = |members: &str, expected: &str| {
        let config = format!(r#"{{"childPolicy": [{{"round_robin": {{}}}}], {members}}}"#);
        check_policy_error("outlier_detection", &config, expected);
    };
    for field in ["interval", "baseEjectionTime", "maxEjectionTime"] {
        check(
            &format!(r#""{field}": "-10s""#),
            &format!(r#".{field}: expected a duration such as "1.5s", found "-10s""#),
        );
    }
    let percent = "expected a whole number from 0 to 100, found 150";
    check(r#""maxEjectionPercent": 150"#, &format!(".maxEjectionPercent: {percent}"));
    for (ejection, field) in [
        ("successRateEjection", "enforcementPercentage"),
        ("failurePercentageEjection", "enforcementPercentage"),
        ("failurePercentageEjection", "threshold"),
    ] {
        check(&format!(r#""{ejection}": {{"{field}": 150}}"#), &format!(".{ejection}.{field}: {percent}"));
    }
    check(r#""successRateEjection": 5"#, ".successRateEjection: expected an object, found 5");

    let check = |config: &str, expected: &str| check_policy_error("outlier_detection", config, expected);
    check("{}", ".childPolicy: expected a list, found nothing");
    let available = PolicyConfig::NAMES.join(", ");
    let unknown = format!(".childPolicy: expected a supported policy, found none; available: {available}");
    check(r#"{"childPolicy": [{"none": {}}]}"#, &unknown);
    check(
        r#"{"childPolicy": [{"none": {}}, {"pick_first": {"shuffleAddressList": []}}]}"#,
        ".childPolicy[1].pick_first.shuffleAddressList: expected true or false, found []",
    );
}

/// A policy of the application.
#[derive(Debug)]
struct Own;

impl PolicyFactory for Own {
    fn name(&self) -> &'static str {
        "own"
    }

    fn build(&self, _: u64) -> Box<dyn Policy> {
        Box::new(RoundRobin)
    }
}

#[test]
fn policies_of_the_application_read_their_configs() {
    let own: Arc<dyn PolicyFactory> = Arc::new(Own);
    let registered = Arc::clone(&own);
    let read = move |config: &Value| match config["number"].as_u64() {
        Some(7) => Ok(Arc::clone(&registered)),
        Some(_) => Ok(Arc::new(Own) as _),
        None => Err(format!("no number in {config}")),
    };
    let policies = PolicyRegistry::default().register("own", read.clone()).register("pick_first", read);
    let parse = |json| ServiceConfig::parse(json, &policies);

    let expected = ServiceConfig::default().load_balancing(PolicyConfig::Custom(own));
    assert_eq!(parse(r#"{"loadBalancingConfig": [{"own": {"number": 7}}]}"#).as_ref(), Ok(&expected));
    assert_eq!(parse(r#"{"loadBalancingConfig": [{"pick_first": {"number": 7}}]}"#).as_ref(), Ok(&expected));
    assert_ne!(parse(r#"{"loadBalancingConfig": [{"own": {"number": 8}}]}"#).as_ref(), Ok(&expected));
    let child = parse(
        r#"{"loadBalancingConfig": [{"outlier_detection": {"childPolicy": [{"own": {"number": 7}}]}}]}"#,
    );
    let Some(PolicyConfig::OutlierDetection(config)) = child.unwrap().load_balancing else {
        panic!("another policy")
    };
    assert_eq!(Some(*config.child_policy), expected.load_balancing);

    let check = |json, expected: &str| {
        assert_eq!(parse(json).unwrap_err().to_string(), format!("service config, {expected}"));
    };
    check(r#"{"loadBalancingConfig": [{"own": {}}]}"#, "loadBalancingConfig[0].own: no number in {}");
    check(
        r#"{"loadBalancingConfig": [{"own": 7}]}"#,
        "loadBalancingConfig[0].own: expected an object, found 7",
    );
    check(r#"{"loadBalancingPolicy": "OWN"}"#, "loadBalancingPolicy: no number in {}");
    assert_eq!(
        format!("{:?}", PolicyRegistry::default().register("own", |_| Err(String::new()))),
        r#"{"own"}"#
    );
}
