//! The messages that calls send.

use std::str::FromStr;

use thalweg::bytes::Bytes;

use crate::arrivals::Random;

/// Which of several messages is sent next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// One after the other, and again from the first.
    #[default]
    InTurn,
    /// Any of them.
    Random {
        /// From which they are drawn.
        seed: u64,
    },
}

/// Messages, encoded.
#[derive(Clone, Debug)]
pub struct Requests {
    messages: Vec<Bytes>,
    order: Order,
    /// Of a call that sends a stream.
    per_stream: u64,
}

impl Requests {
    /// These, of which a stream has `per_stream`; none is one empty message.
    pub fn new(messages: Vec<Bytes>, order: Order, per_stream: Option<u64>) -> Self {
        let per_stream = per_stream.unwrap_or(messages.len() as u64);
        let messages = if messages.is_empty() { vec![Bytes::new()] } else { messages };
        Self { messages, order, per_stream }
    }

    /// Messages that a stream has.
    pub fn per_stream(&self) -> u64 {
        self.per_stream
    }

    /// The one message of this call.
    pub(crate) fn of_call(&self, call: u64) -> &Bytes {
        self.at(call)
    }

    /// A message of the stream of this call.
    pub(crate) fn of_stream(&self, call: u64, number: u64) -> &Bytes {
        self.at(call.wrapping_mul(self.per_stream).wrapping_add(number))
    }

    fn at(&self, number: u64) -> &Bytes {
        let count = self.messages.len() as u64;
        let index = match self.order {
            _ if count == 1 => 0,
            Order::InTurn => number % count,
            // The same message for the same number, whichever worker asks.
            Order::Random { seed } => {
                let mut random = Random(seed ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d));
                random.next() % count
            }
        };
        &self.messages[index as usize]
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "in-turn" => Ok(Self::InTurn),
            None if text == "random" => Ok(Self::Random { seed: 0 }),
            Some(("random", seed)) => seed
                .parse()
                .map(|seed| Self::Random { seed })
                .map_err(|_| format!("`{seed}` is no seed: a number")),
            _ => Err(format!("`{text}` is neither in-turn, random nor random:SEED")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(order: Order, per_stream: Option<u64>) -> Requests {
        Requests::new(["a", "b", "c"].map(Bytes::from).to_vec(), order, per_stream)
    }

    #[test]
    fn messages_come_in_turn() {
        let all = requests(Order::InTurn, Some(2));
        let calls: Vec<&Bytes> = (0..4).map(|call| all.of_call(call)).collect();
        assert_eq!(calls, ["a", "b", "c", "a"]);
        let streams: Vec<&Bytes> = (0..2)
            .flat_map(|call| (0..2).map(move |number| (call, number)))
            .map(|(c, n)| all.of_stream(c, n))
            .collect();
        assert_eq!(streams, ["a", "b", "c", "a"]);
        assert_eq!(requests(Order::InTurn, None).per_stream(), 3);
        assert_eq!(Requests::new(Vec::new(), Order::InTurn, None).of_call(5), "");
    }

    #[test]
    fn messages_at_random_are_the_same_by_the_same_seed() {
        let drawn = |seed| -> Vec<Bytes> {
            let all = requests(Order::Random { seed }, None);
            (0..300).map(|call| all.of_call(call).clone()).collect()
        };
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        for message in ["a", "b", "c"] {
            let count = drawn(1).iter().filter(|drawn| *drawn == message).count();
            assert!((70..130).contains(&count), "{message}: {count}");
        }
        assert_eq!("random:7".parse(), Ok(Order::Random { seed: 7 }));
        assert!("sorted".parse::<Order>().is_err());
    }
}
