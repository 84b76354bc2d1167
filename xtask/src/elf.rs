//! Programs that were linked against a newer C library than the system has.
//!
//! An ELF program names the versions of its libraries that it needs, and the loader refuses it if one is missing,
//! unless the need is marked weak. A copy whose needs are all weak starts; functions that are really missing must then
//! be preloaded.

/// From the ELF specification and the Linux Standard Base.
const SECTION_TABLE_OFFSET: usize = 0x28;
const SECTION_LEN: usize = 0x3a;
const SECTION_COUNT: usize = 0x3c;
const SHT_GNU_VERNEED: u32 = 0x6fff_fffe;
const VER_FLG_WEAK: u16 = 2;

/// Marks all version needs weak, and gives how many there were; `None` if this is no 64-bit little-endian ELF file.
pub(crate) fn weaken_version_needs(program: &mut [u8]) -> Option<usize> {
    if !program.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = long(program, SECTION_TABLE_OFFSET)?;
    let len = usize::from(short(program, SECTION_LEN)?);
    let mut weakened = 0;
    for index in 0..usize::from(short(program, SECTION_COUNT)?) {
        let section = table.checked_add(index.checked_mul(len)?)?;
        if word(program, section.checked_add(4)?)? == SHT_GNU_VERNEED {
            let needs = long(program, section.checked_add(0x18)?)?;
            weakened += weaken_needs(program, needs)?;
        }
    }
    Some(weakened)
}

/// A list of libraries, each with a list of versions; offsets in it count from the entry that holds them, and 0 ends
/// it.
fn weaken_needs(program: &mut [u8], mut library: usize) -> Option<usize> {
    let mut weakened = 0;
    loop {
        let mut version = library.checked_add(word(program, library.checked_add(8)?)? as usize)?;
        for _ in 0..short(program, library.checked_add(2)?)? {
            let at = version.checked_add(4)?;
            let flags = short(program, at)? | VER_FLG_WEAK;
            program.get_mut(at..at + 2)?.copy_from_slice(&flags.to_le_bytes());
            weakened += 1;
            version = version.checked_add(word(program, version.checked_add(12)?)? as usize)?;
        }
        match word(program, library.checked_add(12)?)? {
            0 => return Some(weakened),
            next => library = library.checked_add(next as usize)?,
        }
    }
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn long(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::weaken_version_needs;

    /// A head, one section that lists needs, and a library with two versions behind it.
    fn program() -> Vec<u8> {
        let mut program = vec![0; 0xc0];
        let mut put = |at: usize, bytes: &[u8]| program[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, b"\x7fELF\x02\x01");
        put(0x28, &0x40_u64.to_le_bytes());
        put(0x3a, &0x40_u16.to_le_bytes());
        put(0x3c, &1_u16.to_le_bytes());
        put(0x44, &0x6fff_fffe_u32.to_le_bytes());
        put(0x58, &0x80_u64.to_le_bytes());
        put(0x82, &2_u16.to_le_bytes());
        put(0x88, &0x10_u32.to_le_bytes());
        put(0x9c, &0x10_u32.to_le_bytes());
        program
    }

    #[test]
    fn every_need_becomes_weak() {
        let mut weak = program();
        assert_eq!(weaken_version_needs(&mut weak), Some(2));
        let changed: Vec<usize> = (0..weak.len()).filter(|&at| weak[at] != program()[at]).collect();
        assert_eq!((changed, weak[0x94], weak[0xa4]), (vec![0x94, 0xa4], 2, 2));
    }

    #[test]
    fn what_is_no_program_is_left_alone() {
        assert_eq!(weaken_version_needs(&mut b"#!/bin/sh".to_vec()), None);
        for len in 6..program().len() {
            let mut cut = program()[..len].to_vec();
            assert!(weaken_version_needs(&mut cut).is_none_or(|_| len >= 0xb0), "{len}");
        }
    }
}
