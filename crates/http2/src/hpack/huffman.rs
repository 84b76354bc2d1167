//! The Huffman code of string literals (RFC 7541 §5.2, Appendix B).
//!
//! The code is canonical: codes of one length are consecutive numbers in the order of their symbols, and the first of
//! each length follows from the lengths alone. So only the lengths are listed here, and the tables are computed at
//! compile time.

use super::DecodeError;

/// Appends the decoded string to `out`.
pub(super) fn decode(input: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let start = out.len();
    out.resize(start + input.len() * 8 / CODE_BITS_MIN as usize, 0);
    let len = decode_into(input, &mut out[start..])?;
    out.truncate(start + len);
    Ok(())
}

/// Decodes to the front of `out`, which has an octet for every `CODE_BITS_MIN` bits of `input`. Returns the number of
/// octets written.
fn decode_into(input: &[u8], out: &mut [u8]) -> Result<usize, DecodeError> {
    let mut bits = BitReader { window: 0, available: 0, input };
    let mut len = 0;
    loop {
        // Most symbols have short codes; about seven fit between two refills.
        loop {
            let (symbol, code_len) = SHORT_CODES[(bits.window >> (u64::BITS - SHORT_BITS)) as usize];
            if u32::from(code_len) > bits.available {
                break;
            }
            out[len] = symbol;
            len += 1;
            bits.consume(u32::from(code_len));
        }
        if bits.available < CODE_BITS_MAX && bits.refill() {
            continue;
        }
        if bits.is_padding() {
            return Ok(len);
        }
        let (symbol, code_len) = code_of_any_length(bits.window);
        if code_len > bits.available {
            return Err(DecodeError::InvalidHuffman);
        }
        // EOS has the highest number; decoding it is an error (RFC 7541 §5.2).
        out[len] = u8::try_from(symbol).map_err(|_| DecodeError::InvalidHuffman)?;
        len += 1;
        bits.consume(code_len);
    }
}

/// Reads the bits of a string from the left.
struct BitReader<'a> {
    /// The next bits, left-aligned. After the available bits follow the first bits of the input, or zeros at its end.
    window: u64,
    /// Number of bits in the window that were consumed from the input.
    available: u32,
    input: &'a [u8],
}

impl BitReader<'_> {
    /// Loads as many whole octets as fit: at least 56 bits are then available, unless the input ends. Returns whether
    /// there were any.
    fn refill(&mut self) -> bool {
        let octets = self.input.first_chunk::<8>().copied().unwrap_or_else(|| {
            let mut octets = [0; 8];
            octets[..self.input.len()].copy_from_slice(self.input);
            octets
        });
        // The last octet may be partially loaded; the next refill sets the same bits again.
        self.window |= u64::from_be_bytes(octets) >> self.available;
        let taken = ((63 - self.available) as usize / 8).min(self.input.len());
        self.available += 8 * taken as u32;
        self.input = &self.input[taken..];
        taken > 0
    }

    #[inline]
    fn consume(&mut self, bits: u32) {
        self.window <<= bits;
        self.available -= bits;
    }

    /// Returns whether the rest after a refill is padding: less than an octet, all ones, as EOS starts (RFC 7541 §5.2).
    fn is_padding(&self) -> bool {
        self.available < 8 && self.window.leading_ones() >= self.available
    }
}

/// Returns the length in bytes of the encoded string.
#[inline]
pub(super) fn encoded_len(string: &[u8]) -> usize {
    let bits: usize = string.iter().map(|&octet| usize::from(CODE_LENGTHS[usize::from(octet)])).sum();
    bits.div_ceil(8)
}

/// Appends the encoded string to `out`.
pub(super) fn encode(string: &[u8], out: &mut Vec<u8>) {
    // The low `pending` bits are to be written: fewer than 32 between symbols, and no code is longer than 30.
    let (mut bits, mut pending) = (0u64, 0u32);
    for &octet in string {
        let code = CODES[usize::from(octet)];
        bits = bits << code.len | u64::from(code.number);
        pending += code.len;
        if pending >= 32 {
            pending -= 32;
            out.extend_from_slice(&((bits >> pending) as u32).to_be_bytes());
        }
    }
    // Pads with the first bits of EOS, which are all ones (RFC 7541 §5.2).
    let padding = pending.wrapping_neg() % 8;
    bits = bits << padding | ((1 << padding) - 1);
    pending += padding;
    while pending > 0 {
        pending -= 8;
        out.push((bits >> pending) as u8);
    }
}

const EOS: usize = 256;
const SYMBOLS: usize = 257;
const CODE_BITS_MIN: u32 = 5;
const CODE_BITS_MAX: u32 = 30;

/// Codes of up to this many bits, which covers nearly all symbols in use, are decoded with one table lookup.
const SHORT_BITS: u32 = 8;

/// Marks a longer code: a length that exceeds the available bits.
const LONG: u8 = u8::MAX;

#[derive(Clone, Copy)]
struct Code {
    number: u32,
    len: u32,
}

/// By symbol.
static CODES: [Code; SYMBOLS] = codes();

/// By the next bits: the symbol whose code they start with, and its length; `LONG` for longer codes.
static SHORT_CODES: [(u8, u8); 1 << SHORT_BITS] = short_codes();

static CANON: Canon = canon();

/// Decodes the code at the start of the window. Returns the symbol and the length.
#[cold]
fn code_of_any_length(window: u64) -> (u16, u32) {
    let window = (window >> 32) as u32;
    let mut len = CODE_BITS_MIN;
    while len < CODE_BITS_MAX && u64::from(window) >= CANON.limits[len as usize] {
        len += 1;
    }
    let code = window >> (u32::BITS - len);
    let rank = CANON.first_ranks[len as usize] + (code - CANON.first_codes[len as usize]);
    (CANON.symbols[rank as usize], len)
}

/// Tables for decoding a canonical code of any length, with an element per length.
struct Canon {
    /// The first number, left-aligned in 32 bits, that is too large for a code of up to this length.
    limits: [u64; CODE_BITS_MAX as usize + 1],
    first_codes: [u32; CODE_BITS_MAX as usize + 1],
    /// Index in `symbols` of the first symbol of this length.
    first_ranks: [u32; CODE_BITS_MAX as usize + 1],
    /// Symbols by length, then by value.
    symbols: [u16; SYMBOLS],
}

const fn canon() -> Canon {
    let mut canon = Canon {
        limits: [0; CODE_BITS_MAX as usize + 1],
        first_codes: [0; CODE_BITS_MAX as usize + 1],
        first_ranks: [0; CODE_BITS_MAX as usize + 1],
        symbols: [0; SYMBOLS],
    };
    let (mut next_code, mut rank) = (0, 0);
    let mut len = 1;
    while len <= CODE_BITS_MAX as usize {
        next_code <<= 1;
        canon.first_codes[len] = next_code;
        canon.first_ranks[len] = rank;
        let mut symbol = 0;
        while symbol < SYMBOLS {
            if CODE_LENGTHS[symbol] as usize == len {
                canon.symbols[rank as usize] = symbol as u16;
                rank += 1;
                next_code += 1;
            }
            symbol += 1;
        }
        canon.limits[len] = (next_code as u64) << (32 - len);
        len += 1;
    }
    canon
}

const fn codes() -> [Code; SYMBOLS] {
    let canon = canon();
    let mut codes = [Code { number: 0, len: 0 }; SYMBOLS];
    let mut rank = 0;
    while rank < SYMBOLS {
        let symbol = canon.symbols[rank] as usize;
        let len = CODE_LENGTHS[symbol];
        let number = canon.first_codes[len as usize] + (rank as u32 - canon.first_ranks[len as usize]);
        codes[symbol] = Code { number, len: len as u32 };
        rank += 1;
    }
    codes
}

const fn short_codes() -> [(u8, u8); 1 << SHORT_BITS] {
    let codes = codes();
    let mut table = [(0, LONG); 1 << SHORT_BITS];
    let mut symbol = 0;
    while symbol < EOS {
        let Code { number, len } = codes[symbol];
        if len <= SHORT_BITS {
            let mut slot = number << (SHORT_BITS - len);
            while slot < (number + 1) << (SHORT_BITS - len) {
                table[slot as usize] = (symbol as u8, len as u8);
                slot += 1;
            }
        }
        symbol += 1;
    }
    table
}

/// RFC 7541 Appendix B: the length in bits of each symbol's code, EOS last.
#[rustfmt::skip]
const CODE_LENGTHS: [u8; SYMBOLS] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
    28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
    6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
    21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
    19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn check_round_trip(string: &[u8]) {
        let mut encoded = Vec::new();
        encode(string, &mut encoded);
        assert_eq!(encoded.len(), encoded_len(string), "{string:02x?}");
        let mut decoded = b"before".to_vec();
        assert_eq!(decode(&encoded, &mut decoded), Ok(()), "{string:02x?}");
        assert_eq!(decoded, [b"before", string].concat());
    }

    fn check_invalid(encoded: &[u8]) {
        assert_eq!(decode(encoded, &mut Vec::new()), Err(DecodeError::InvalidHuffman), "{encoded:02x?}");
    }

    #[test]
    fn codes_are_those_of_the_rfc() {
        // RFC 7541 Appendix B: the first and last codes of some lengths.
        let expected = [
            (b'0'.into(), 0x0, 5),
            (b't'.into(), 0x9, 5),
            (b' '.into(), 0x14, 6),
            (b':'.into(), 0x5c, 7),
            (b'z'.into(), 0x7b, 7),
            (b'&'.into(), 0xf8, 8),
            (b'Z'.into(), 0xfd, 8),
            (b'!'.into(), 0x3f8, 10),
            (b'\\'.into(), 0x7fff0, 19),
            (0, 0x1ff8, 13),
            (255, 0x3ff_ffee, 26),
            (22, 0x3fff_fffe, 30),
            (EOS, 0x3fff_ffff, 30),
        ];
        for (symbol, number, len) in expected {
            assert_eq!((CODES[symbol].number, CODES[symbol].len), (number, len), "{symbol}");
        }
    }

    #[test]
    fn code_is_complete() {
        // Kraft's sum is 1: every sequence of bits is a sequence of codes, so the limits are complete.
        let sum: u64 = CODE_LENGTHS.iter().map(|&len| 1 << (CODE_BITS_MAX - u32::from(len))).sum();
        assert_eq!(sum, 1 << CODE_BITS_MAX);
    }

    #[test]
    fn every_symbol_at_every_alignment() {
        for symbol in 0..=255 {
            // '0' has 5 bits, so eight of them cover every alignment.
            for zeros in 0..8 {
                check_round_trip(&[&vec![b'0'; zeros][..], &[symbol]].concat());
                check_round_trip(&[&vec![b'0'; zeros][..], &[symbol], &b"0123456789"[..]].concat());
            }
        }
    }

    #[test]
    fn strings_of_every_length() {
        check_round_trip(b"");
        for len in 1..300usize {
            check_round_trip(&(0..len).map(|at| (at * at * 31 + len * 7) as u8).collect::<Vec<_>>());
            check_round_trip(&b"/helloworld.Greeter/SayHello".repeat(11)[..len]);
        }
    }

    #[test]
    fn eos_is_an_error() {
        // 30 ones are EOS; two more pad to 32.
        check_invalid(&[0xff; 4]);
        check_invalid(&[0xff; 12]);
        // '0' before it.
        check_invalid(&[0b0000_0111, 0xff, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn padding_of_an_octet_or_of_other_bits_is_an_error() {
        // "0": five zeros, three ones.
        assert_eq!(decode(&[0b0000_0111], &mut Vec::new()), Ok(()));
        check_invalid(&[0b0000_0110]);
        check_invalid(&[0b0000_0011]);
        check_invalid(&[0b0000_0111, 0xff]);
        check_invalid(&[0xff]);
        check_invalid(&[0xff, 0xff]);
        check_invalid(&[0xff, 0xff, 0xff]);
    }

    #[test]
    fn truncated_code_is_an_error() {
        let mut encoded = Vec::new();
        encode(&[22], &mut encoded);
        for end in 1..encoded.len() {
            check_invalid(&encoded[..end]);
        }
    }
}
