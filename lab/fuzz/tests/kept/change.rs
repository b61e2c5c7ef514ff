//! Makes random changes of inputs: bits flipped, pieces cut, copied or exchanged between two inputs,
//! numbers set to extremes, words inserted. The same seed makes the same inputs on every machine.

use vellum_measure::Rng;

/// The largest input.
pub(crate) const BYTES_MAX: usize = 1 << 16;
/// Limit of the changes to one input.
const CHANGES_MAX: u64 = 6;
/// The longest piece that is cut, copied or filled.
const PIECE_MAX: usize = 256;
/// Numbers at the limits of the readers' integer types, and next to them.
const EXTREMES: &[u64] = &[
    0,
    1,
    7,
    8,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    1 << 53,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX - 1,
    u64::MAX,
];
/// The same numbers as text, and other faults of texts.
const NUMBERS: &[&str] = &[
    "0",
    "-0",
    "-1",
    "00000000000000000001",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "1e308",
    "1e309",
    "1e-324",
    "0.1",
    ".",
    "NaN",
    "inf",
    "0x",
    "\u{feff}",
    "\u{1f600}",
];

/// Makes an input of one or two of `kept`, with `words`.
pub(crate) fn changed(kept: &[Vec<u8>], words: &[&str], rng: &mut Rng) -> Vec<u8> {
    let mut input = kept[below(rng, kept.len())].clone();
    if rng.below(8) == 0 {
        let other = &kept[below(rng, kept.len())];
        let (from, to) = (below(rng, input.len() + 1), below(rng, other.len() + 1));
        input.truncate(from);
        input.extend_from_slice(&other[to..]);
    }
    for _ in 0..=rng.below(CHANGES_MAX) {
        change(&mut input, words, rng);
    }
    input.truncate(BYTES_MAX);
    input
}

fn below(rng: &mut Rng, bound: usize) -> usize {
    rng.below(bound.max(1) as u64) as usize
}

fn change(input: &mut Vec<u8>, words: &[&str], rng: &mut Rng) {
    let at = below(rng, input.len() + 1);
    let piece = (1 + below(rng, PIECE_MAX)).min(input.len() - at);
    match rng.below(12) {
        0 | 1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << rng.below(8);
            }
        }
        2 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = rng.next_u64() as u8;
            }
        }
        3 | 4 => {
            // A number of one, two, four or eight bytes, little-endian or big-endian.
            let number = EXTREMES[below(rng, EXTREMES.len())].wrapping_add(rng.below(3)).wrapping_sub(1);
            let (bytes, width) = (number.to_le_bytes(), 1 << rng.below(4));
            for (place, byte) in input.iter_mut().skip(at).zip(&bytes[..width]) {
                *place = *byte;
            }
        }
        5 => input.truncate(at),
        6 => {
            input.drain(at..at + piece);
        }
        7 => {
            let copy = input[at..at + piece].to_vec();
            let to = below(rng, input.len() + 1);
            input.splice(to..to, copy);
        }
        8 => {
            let times = 1 + below(rng, 64);
            let copy = input[at..at + piece.min(32)].repeat(times);
            input.splice(at..at, copy);
        }
        9 if !words.is_empty() => put(input, at, words[below(rng, words.len())].as_bytes(), rng),
        10 => put_number(input, at, rng),
        _ => {
            let byte = *[0, 0xff, b' ', b'\n', rng.next_u64() as u8].get(below(rng, 5)).unwrap_or(&0);
            input[at..at + piece].fill(byte);
        }
    }
    input.truncate(BYTES_MAX);
}

/// Inserts a word, or replaces the bytes there.
fn put(input: &mut Vec<u8>, at: usize, word: &[u8], rng: &mut Rng) {
    let over = if rng.below(2) == 0 { word.len().min(input.len() - at) } else { 0 };
    input.splice(at..at + over, word.iter().copied());
}

/// Replaces the next digits after `at` by an extreme number.
fn put_number(input: &mut Vec<u8>, at: usize, rng: &mut Rng) {
    let Some(from) = input[at..].iter().position(u8::is_ascii_digit).map(|found| at + found) else { return };
    let digits = input[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let number = NUMBERS[below(rng, NUMBERS.len())];
    input.splice(from..from + digits, number.bytes());
}

/// A shorter input for which `fails` still returns true: the shortest of at most `tries` tries.
pub(crate) fn shortened(input: Vec<u8>, mut tries: usize, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut best = input;
    let mut piece = best.len().next_power_of_two() / 2;
    while piece > 0 {
        let mut at = 0;
        while at < best.len() && tries > 0 {
            let mut shorter = best.clone();
            shorter.drain(at..(at + piece).min(best.len()));
            tries -= 1;
            if fails(&shorter) { best = shorter } else { at += piece }
        }
        piece /= 2;
    }
    best
}
