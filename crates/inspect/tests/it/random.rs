//! Tests with reordered and lost packets, and with corrupted files.

use thalweg_inspect::capture::{Limits, read};

use crate::support::{
    CLIENT, Link, Packet, SERVER, THREE, Tcp, described, pcap, pcapng, read_all, three_calls,
};

/// `splitmix64`
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

/// Returns the traffic of [`three_calls`] in segments of random size, some retransmitted with other lengths, in random
/// order.
fn scrambled(random: &mut Random) -> Vec<Packet> {
    let whole = three_calls();
    let payloads: Vec<(usize, Vec<u8>)> = whole.packets[2..6]
        .iter()
        .zip([CLIENT, SERVER, CLIENT, SERVER])
        // Skips the headers of Ethernet, IP and TCP.
        .map(|((_, packet), from)| (from, packet[54..].to_vec()))
        .collect();
    let mut tcp = Tcp::new();
    tcp.open();
    let handshake = tcp.packets.len();
    for (from, payload) in payloads {
        let start = tcp.packets.len();
        let first = tcp.sequences[from];
        let mut at = 0;
        while at < payload.len() {
            let len = (1 + random.below(40)).min(payload.len() - at);
            tcp.send(from, &payload[at..at + len]);
            at += len;
            if random.below(3) == 0 {
                // Retransmits an arbitrary range already sent.
                let again = random.below(at);
                let end = again + 1 + random.below(at - again);
                tcp.sequences[from] = first.wrapping_add(again as u32);
                tcp.send(from, &payload[again..end]);
                tcp.sequences[from] = first.wrapping_add(at as u32);
            }
        }
        for _ in 0..random.below(6) {
            let (left, right) = (
                start + random.below(tcp.packets.len() - start),
                start + random.below(tcp.packets.len() - start),
            );
            tcp.packets.swap(left, right);
        }
    }
    assert!(handshake == 2);
    tcp.close();
    tcp.packets
}

#[test]
fn reordered_and_duplicated_segments_yield_the_same_calls() {
    for seed in 0..200 {
        let packets = scrambled(&mut Random(seed));
        let (calls, summary) = read_all(&pcap(Link::Ethernet, &packets));
        assert_eq!((described(&calls), summary.gaps), (THREE.map(str::to_owned).to_vec(), 0), "{seed}");
    }
}

#[test]
fn lost_packets_never_produce_wrong_calls() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut packets = scrambled(&mut random);
        for _ in 0..=random.below(4) {
            packets.remove(random.below(packets.len()));
        }
        let (calls, _) = read_all(&pcap(Link::Ethernet, &packets));
        for call in calls {
            assert!([1, 3, 5].contains(&call.stream), "{seed}: {call:?}");
            let method = call.method().unwrap_or_else(|| "none".to_owned());
            assert!(
                ["shop.Orders/Get", "shop.Orders/Watch", "none"].contains(&method.as_str()),
                "{seed}: {call:?}"
            );
            for message in call.request.messages.iter().chain(&call.response.messages) {
                let known: [&[u8]; 7] = [b"\x08\x01", b"\x08\x02", b"abc", b"def", b"first", b"second", b""];
                assert!(known.contains(&message.bytes.as_slice()), "{seed}: {call:?}");
            }
        }
    }
}

#[test]
fn no_input_panics_or_exceeds_memory_bounds() {
    let limits = Limits {
        connections_max: 4,
        calls_max: 4,
        buffered_bytes_max: 256,
        frame_len_max: 512,
        fields_len_max: 256,
        messages_max: 2,
        kept_bytes_max: 64,
    };
    let tcp = three_calls();
    for file in [pcap(Link::Ethernet, &tcp.packets), pcapng(Link::Ethernet, &tcp.packets)] {
        for seed in 0..1500 {
            let mut random = Random(seed);
            let mut changed = file.clone();
            for _ in 0..=random.below(12) {
                let at = random.below(changed.len());
                match random.below(4) {
                    0 => changed[at] = random.below(256) as u8,
                    1 => changed[at] ^= 1 << random.below(8),
                    2 => {
                        let end = (at + 1 + random.below(64)).min(changed.len());
                        changed.drain(at..end);
                    }
                    _ => {
                        let end = (at + 1 + random.below(64)).min(changed.len());
                        let again = changed[at..end].to_vec();
                        changed.splice(at..at, again);
                    }
                }
                if changed.is_empty() {
                    break;
                }
            }
            let mut kept = 0;
            // A file with a corrupted header may be rejected.
            let _ = read(&changed[..], &limits, |call| {
                let sides = call.request.messages.iter().chain(&call.response.messages);
                kept = sides.map(|message| message.bytes.len()).sum();
                assert!(kept <= 64, "{seed}: {kept} bytes");
                true
            });
        }
    }
}
