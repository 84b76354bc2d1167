use super::*;

/// Returns the names of health checks: `None` if no choice applies.
fn choose(record: &str, host_name: &str, random_percent: u32) -> Result<Option<String>, ServiceConfigError> {
    let client = TxtClient { host_name, random_percent };
    let chosen = ServiceConfig::json_from_txt(record, client)?;
    let parsed = chosen.map(|json| ServiceConfig::parse(&json, &PolicyRegistry::default())).transpose()?;
    Ok(parsed.map(|config| config.health_check.unwrap_or_default()))
}

/// Checks the chosen config of a client `host` with the random number 49.
fn check_choice(choices: &str, expected: Option<&str>) {
    let chosen = choose(&format!("grpc_config=[{choices}]"), "host", 49).unwrap();
    assert_eq!(chosen.as_deref(), expected, "{choices}");
}

/// Returns a choice with these criteria.
fn choice(name: &str, criteria: &str) -> String {
    format!(r#"{{{criteria} "serviceConfig": {{"healthCheckConfig": {{"serviceName": "{name}"}}}}}}"#)
}

#[test]
fn a_choice_applies_if_all_criteria_do() {
    let applies =
        |criteria: &str, expected: bool| check_choice(&choice("a", criteria), expected.then_some("a"));
    applies("", true);
    applies(r#""clientLanguage": null, "percentage": null, "clientHostname": null,"#, true);
    applies(r#""clientLanguage": [], "clientHostname": [],"#, true);
    applies(r#""clientLanguage": ["rust"],"#, true);
    applies(r#""clientLanguage": ["go", "RUST"],"#, true);
    applies(r#""clientLanguage": ["go", "c++"],"#, false);
    applies(r#""clientHostname": ["other", "host"],"#, true);
    applies(r#""clientHostname": ["HOST"],"#, false);
    applies(r#""percentage": 100,"#, true);
    applies(r#""percentage": 50,"#, true);
    applies(r#""percentage": 49,"#, false);
    applies(r#""percentage": 0,"#, false);
    applies(r#""clientLanguage": ["rust"], "percentage": 50, "clientHostname": ["host"],"#, true);
    applies(r#""clientLanguage": ["java"], "percentage": 50, "clientHostname": ["host"],"#, false);
    applies(r#""clientLanguage": ["rust"], "percentage": 49, "clientHostname": ["host"],"#, false);
    applies(r#""clientLanguage": ["rust"], "percentage": 50, "clientHostname": ["else"],"#, false);
}

#[test]
fn percentage_is_the_share_of_random_numbers() {
    for percentage in [0, 1, 50, 99, 100] {
        let record = format!("grpc_config=[{}]", choice("a", &format!(r#""percentage": {percentage},"#)));
        let chosen = (0..100).filter(|&random| choose(&record, "", random).unwrap().is_some()).count();
        assert_eq!(chosen, percentage);
    }
}

#[test]
fn the_first_choice_that_applies_is_chosen() {
    let (go, a, b) = (choice("go", r#""clientLanguage": ["go"],"#), choice("a", ""), choice("b", ""));
    check_choice("", None);
    check_choice(&go, None);
    check_choice(&format!("{go}, {a}, {b}"), Some("a"));
    check_choice(&format!("{b}, {go}, {a}"), Some("b"));
    // Choices after it, and configs of those before it, are not validated.
    check_choice(&format!(r#"{{"percentage": 0, "serviceConfig": 5}}, {a}, {{"os": 5}}"#), Some("a"));
}

#[test]
fn other_records_are_ignored() {
    assert_eq!(choose("v=spf1 -all", "", 0), Ok(None));
    assert_eq!(choose("", "", 0), Ok(None));
}

#[test]
fn the_example_of_a2_is_read() {
    let record = r#"grpc_config=[{"serviceConfig":{"loadBalancingPolicy":"round_robin","methodConfig":[{"name":[
        {"service":"MyService","method":"Foo"}],"waitForReady":true}]}}]"#;
    let client = TxtClient { host_name: "host", random_percent: 99 };
    let json = ServiceConfig::json_from_txt(record, client).unwrap().unwrap();
    let config = ServiceConfig::parse(&json, &PolicyRegistry::default()).unwrap();
    assert_eq!(config.load_balancing, Some(PolicyConfig::RoundRobin));
    assert_eq!(config.method("MyService", "Foo").unwrap().wait_for_ready, Some(true));
}

#[test]
fn invalid_records_are_named() {
    let check = |choices: &str, expected: &str| {
        let error = choose(&format!("grpc_config={choices}"), "host", 0).unwrap_err().to_string();
        let error = error.strip_prefix("service config").unwrap().trim_start_matches(", ");
        assert_eq!(error, expected, "{choices}");
    };
    check("{}", ": expected a list, found {}");
    check("[5]", "[0]: expected an object, found 5");
    check("[{}]", "[0].serviceConfig: expected an object, found nothing");
    check(r#"[{"serviceConfig": []}]"#, "[0].serviceConfig: expected an object, found []");
    check(
        r#"[{"serviceConfig": {"methodConfig": [{"timeout": 1}]}}]"#,
        r#"methodConfig[0].timeout: expected a duration such as "1.5s", found 1"#,
    );
    check(
        r#"[{"clientOs": "linux", "serviceConfig": {}}]"#,
        "[0]: expected one of clientLanguage, percentage, clientHostname, serviceConfig, found clientOs",
    );
    for found in ["101", "-1", "0.5", "[]"] {
        let expected = format!("[0].percentage: expected a whole number from 0 to 100, found {found}");
        check(&format!(r#"[{{"percentage": {found}, "serviceConfig": {{}}}}]"#), &expected);
    }
    check(r#"[{"clientLanguage": "rust"}]"#, r#"[0].clientLanguage: expected a list, found "rust""#);
    check(r#"[{"clientHostname": [5]}]"#, "[0].clientHostname[0]: expected a string, found 5");
    assert!(matches!(choose("grpc_config=", "", 0), Err(ServiceConfigError::Syntax(_))));
}
