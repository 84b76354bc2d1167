use super::*;

/// Returns outcomes of endpoints from pairs of succeeded and failed calls.
fn calls(pairs: &[(u64, u64)]) -> Vec<Outcomes> {
    pairs.iter().map(|&(succeeded, failed)| Outcomes { succeeded, failed }).collect()
}

#[test]
fn success_rate_far_below_the_mean_is_an_outlier() {
    let check = |stdev_factor, minimum_hosts, pairs: &[(u64, u64)], expected: &[usize]| {
        let algorithm = SuccessRateEjection { stdev_factor, minimum_hosts, ..SuccessRateEjection::default() };
        assert_eq!(by_success_rate(&algorithm, &calls(pairs)), expected, "{pairs:?}");
    };
    let good = (100, 0);
    check(1900, 5, &[good; 5], &[]);
    // One of n endpoints without a success is √(n−1) standard deviations below the mean: 2 for 5 endpoints.
    check(1900, 5, &[good, good, good, good, (0, 100)], &[4]);
    check(2100, 5, &[good, good, good, good, (0, 100)], &[]);
    check(1900, 5, &[good, good, good, (0, 100), (0, 100)], &[]);
    check(500, 5, &[good, good, (0, 100), good, (0, 100)], &[2, 4]);
    check(1900, 5, &[good, good, (98, 2), good, good], &[2]);
    // Too few hosts, or too few calls.
    check(1900, 5, &[good, good, good, (0, 100)], &[]);
    check(500, 4, &[good, good, good, (0, 100)], &[3]);
    check(1900, 5, &[good, good, good, good, (0, 99)], &[]);
    check(1900, 5, &[good, good, good, good, good, (0, 99)], &[]);
    check(1900, 0, &[], &[]);
    // All alike, even if they fail.
    check(0, 5, &[(0, 100); 6], &[]);
}

#[test]
fn success_rate_without_a_volume_ignores_idle_endpoints() {
    let algorithm =
        SuccessRateEjection { request_volume: 0, stdev_factor: 500, ..SuccessRateEjection::default() };
    let calls = calls(&[(1, 0), (1, 0), (0, 0), (1, 0), (1, 0), (0, 1)]);
    assert_eq!(by_success_rate(&algorithm, &calls), [5]);
}

#[test]
fn failure_percentage_above_the_threshold_is_an_outlier() {
    let check = |threshold, minimum_hosts, pairs: &[(u64, u64)], expected: &[usize]| {
        let algorithm = FailurePercentageEjection { threshold, minimum_hosts, ..Default::default() };
        assert_eq!(by_failures(&algorithm, &calls(pairs)), expected, "{pairs:?}");
    };
    let good = (50, 0);
    check(85, 5, &[good, (0, 50), good, good, (7, 43)], &[1, 4]);
    // 85 % is not more than 85 %.
    check(85, 5, &[good, good, good, good, (15, 85)], &[]);
    check(85, 5, &[good, good, good, good, (15, 86)], &[4]);
    check(7, 5, &[good, good, good, good, (93, 7)], &[]);
    // Too few hosts, or too few calls.
    check(85, 5, &[good, good, good, (0, 50)], &[]);
    check(85, 4, &[good, good, good, (0, 50)], &[3]);
    check(85, 5, &[good, good, good, good, good, (0, 49)], &[]);
    check(100, 5, &[(0, 50); 5], &[]);
    check(0, 5, &[(0, 50); 5], &[0, 1, 2, 3, 4]);
    check(85, 5, &[good, good, good, good, (0, u64::MAX)], &[4]);
}
