use super::*;
use crate::policy::mix;

/// gRPC's static stride scheduler scales them alike.
#[test]
fn weights_are_scaled_to_16_bits() {
    let check = |weights: &[Option<f64>], expected: Option<&[u16]>| {
        assert_eq!(scale(weights).as_deref(), expected, "{weights:?}");
    };
    check(&[], None);
    check(&[Some(1.0)], None);
    check(&[Some(1.0), None, None], None);
    check(&[Some(1.0), Some(1.0)], Some(&[65535, 65535]));
    check(&[Some(1.0), Some(3.0)], Some(&[21845, 65535]));
    check(&[Some(1.0), None, Some(3.0)], Some(&[21845, 43690, 65535]));
    // At most 10 times the mean of 50.95, at least 0.01 times it.
    let mut many = [Some(1.0); 20];
    many[7] = Some(1000.0);
    let scaled = scale(&many).unwrap();
    assert_eq!((scaled[7], scaled[0]), (65535, 129));
    check(&[Some(1e-300), Some(100.0)], Some(&[328, 65535]));
    // No overflow.
    check(&[Some(f64::MAX), Some(f64::MAX), Some(f64::MIN_POSITIVE)], Some(&[65535, 65535, 437]));
    check(&[Some(f64::MIN_POSITIVE), Some(5e-324)], Some(&[65535, 328]));
}

/// Segments of length 1 and 2.
#[test]
fn segment_begins_at_the_end_of_the_last() {
    let stride = Stride { ends: vec![1, 3], positions: vec![5, 7] };
    let picked = |at| {
        let pick = |turn: &u64| stride.pick(&PickArgs::new(*turn, &|_| 0));
        (0..3000).filter(|turn| pick(turn) == Pick::Endpoint(at)).count()
    };
    assert!(
        (990..1010).contains(&picked(5)) && (1990..2010).contains(&picked(7)),
        "{} {}",
        picked(5),
        picked(7)
    );
}

/// The claim of [`Stride`]: ±10 calls, whatever the first turn.
#[test]
fn calls_differ_from_their_share_by_ten_at_most() {
    for seed in 0..20 {
        let weights: Vec<Option<f64>> =
            (0..7).map(|at| Some(1.0 + (mix(seed * 8 + at) % 100) as f64)).collect();
        let stride = Stride::new(&[0, 1, 2, 3, 4, 5, 6], &weights).unwrap();
        let first = mix(seed);
        let mut tally = [0_u64; 7];
        for turn in 0..100_000_u64 {
            let Pick::Endpoint(at) = stride.pick(&PickArgs::new(first.wrapping_add(turn), &|_| 0)) else {
                panic!("a stride always picks")
            };
            tally[at] += 1;
            if turn % 997 == 0 {
                let length = *stride.ends.last().unwrap() as f64;
                let starts = std::iter::once(&0).chain(&stride.ends);
                for ((start, end), calls) in starts.zip(&stride.ends).zip(tally) {
                    let share = (end - start) as f64 / length * (turn + 1) as f64;
                    assert!((calls as f64 - share).abs() < 10.0, "{calls} calls, not {share}");
                }
            }
        }
    }
}

/// An endpoint of share s waits for at most 3/s turns.
#[test]
fn no_endpoint_waits_long() {
    let stride = Stride::new(&[0, 1, 2], &[Some(1.0), Some(7.0), Some(12.0)]).unwrap();
    for (at, share) in [(0, 0.05), (1, 0.35), (2, 0.6)] {
        let turns: Vec<u64> = (0..50_000)
            .filter(|&turn| stride.pick(&PickArgs::new(turn, &|_| 0)) == Pick::Endpoint(at))
            .collect();
        let wait = turns.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!((wait as f64) < 3.0 / share, "endpoint {at} waits for {wait} turns");
    }
}
