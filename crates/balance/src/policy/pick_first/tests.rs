use super::*;

fn address(text: &str) -> Address {
    text.parse().map_or_else(|_| Address::Unix(text.into()), Address::Tcp)
}

fn resolved(endpoints: &[&str]) -> Vec<Endpoint> {
    let addresses = |list: &str| list.split(' ').map(address).collect();
    endpoints.iter().map(|list| Endpoint::with_addresses(addresses(list))).collect()
}

/// Checks the order of addresses after flattening.
fn check(endpoints: &[&str], expected: &[&str]) {
    let selected = PickFirst::new(PickFirstConfig::default(), 1).select(resolved(endpoints));
    let expected: Vec<Address> = expected.iter().map(|text| address(text)).collect();
    let got: Vec<Address> = selected.iter().flat_map(|endpoint| endpoint.addresses.clone()).collect();
    assert_eq!((selected.len(), got), (usize::from(!expected.is_empty()), expected), "{endpoints:?}");
}

#[test]
fn endpoints_become_one_with_interleaved_families() {
    check(&[], &[]);
    check(&["1.1.1.1:1", "1.1.1.1:2"], &["1.1.1.1:1", "1.1.1.1:2"]);
    check(&["1.1.1.1:1 1.1.1.1:2", "[::1]:1 [::1]:2"], &["1.1.1.1:1", "[::1]:1", "1.1.1.1:2", "[::1]:2"]);
    // The first address determines the first family; a longer family keeps its rest.
    check(&["[::1]:1", "[::1]:2", "[::1]:3", "1.1.1.1:1"], &["[::1]:1", "1.1.1.1:1", "[::1]:2", "[::1]:3"]);
    // Mapped addresses are IPv4, and paths are a family of their own.
    check(
        &["[::ffff:1.1.1.1]:1", "1.1.1.1:2", "/run/a", "[::1]:1"],
        &["[::ffff:1.1.1.1]:1", "/run/a", "[::1]:1", "1.1.1.1:2"],
    );
}

#[test]
fn addresses_listed_twice_are_tried_once() {
    check(&["1.1.1.1:1 1.1.1.1:1", "1.1.1.1:2 1.1.1.1:1"], &["1.1.1.1:1", "1.1.1.1:2"]);
}

fn shuffled(endpoints: &[Endpoint], seed: u64) -> Vec<Address> {
    let config = PickFirstConfig::default().shuffle_address_list(true);
    PickFirst::new(config, seed).select(endpoints.to_vec()).remove(0).addresses
}

/// gRFC A62.
#[test]
fn shuffle_reaches_every_order_and_keeps_addresses_of_an_endpoint_together() {
    let endpoints = resolved(&["1.1.1.1:1 1.1.1.1:2", "2.2.2.2:1", "3.3.3.3:1"]);
    let mut orders = std::collections::HashMap::new();
    for seed in 0..6000 {
        *orders.entry(shuffled(&endpoints, seed)).or_insert(0) += 1;
    }
    assert_eq!(orders.len(), 6);
    for (order, count) in orders {
        let first = order.iter().position(|known| *known == address("1.1.1.1:1")).unwrap();
        assert_eq!(order[first + 1], address("1.1.1.1:2"));
        assert!((850..1150).contains(&count), "{count} of 6000 in {order:?}");
    }
}

/// The order of those that stay is the same after an update, so that the connection in use is first again.
#[test]
fn shuffled_order_survives_an_update() {
    let all = resolved(&["1.1.1.1:1", "2.2.2.2:1", "3.3.3.3:1", "4.4.4.4:1"]);
    for seed in 0..100 {
        let mut rest = shuffled(&all, seed);
        rest.retain(|known| *known != address("2.2.2.2:1"));
        assert_eq!(shuffled(&[all[3].clone(), all[0].clone(), all[2].clone()], seed), rest);
    }
}

/// gRFC A113.
#[test]
fn shuffle_puts_an_endpoint_first_in_proportion_to_its_weight() {
    let mut endpoints = resolved(&["1.1.1.1:1", "2.2.2.2:1"]);
    endpoints[1].weight = 3;
    let heavy_first =
        (0..10_000).filter(|&seed| shuffled(&endpoints, seed)[0] == address("2.2.2.2:1")).count();
    assert!((7300..7700).contains(&heavy_first), "{heavy_first} of 10,000 instead of 3/4");
}
