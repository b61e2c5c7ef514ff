//! Immediates: values without an object, encoded in one word.
//!
//! ```text
//! 0001 0000 0000 0000 .. FFF1 0000 0000 0000   a floating-point number, plus 2^48
//! FFF2 ....                                    a character
//! FFF3 ....                                    a constant: (), #t, #f ...
//! FFF4 ....                                    a built-in procedure, by its number
//! FFF8 .... .. FFFF ....                       an integer of 51 bits
//! ```
//!
//! All are at least 2^48, as `vellum_heap::Word` requires.

/// Bits of an integer, its sign included.
pub const INTEGER_BITS: u32 = 51;
const FLOAT: u64 = 1 << 48;
const CHAR: u64 = 0xfff2 << 48;
const CONSTANT: u64 = 0xfff3 << 48;
const PRIMITIVE: u64 = 0xfff4 << 48;
const INTEGER: u64 = 0xfff8 << 48;
const PAYLOAD: u64 = (1 << 48) - 1;

/// `()`.
pub const NIL: u64 = CONSTANT;
/// `#f`.
pub const FALSE: u64 = CONSTANT + 1;
/// `#t`.
pub const TRUE: u64 = CONSTANT + 2;
/// The value of expressions without a useful value.
pub const UNSPECIFIED: u64 = CONSTANT + 3;
/// The end of a file.
pub const EOF: u64 = CONSTANT + 4;
/// A variable that has no value yet.
pub const UNBOUND: u64 = CONSTANT + 5;
/// The type of the machine's own errors, where a record has its type.
pub const CONDITION: u64 = CONSTANT + 6;

/// Whether the number fits an immediate integer.
#[inline(always)]
pub const fn is_integer(number: i64) -> bool {
    number >= -(1 << (INTEGER_BITS - 1)) && number < 1 << (INTEGER_BITS - 1)
}

/// The word of an integer, which must fit.
#[inline(always)]
pub const fn integer(number: i64) -> u64 {
    INTEGER | (number as u64 & ((1 << INTEGER_BITS) - 1))
}

/// The integer.
#[inline(always)]
pub const fn as_integer(bits: u64) -> Option<i64> {
    const UNUSED: u32 = 64 - INTEGER_BITS;
    if bits >= INTEGER { Some(((bits << UNUSED) as i64) >> UNUSED) } else { None }
}

/// The word of a floating-point number.
#[inline(always)]
pub fn float(number: f64) -> u64 {
    // NaNs with other bits would have the words of other immediates.
    if number.is_nan() { 0x7ff8 << 48 } else { number.to_bits() }.wrapping_add(FLOAT)
}

/// The floating-point number.
#[inline(always)]
pub fn as_float(bits: u64) -> Option<f64> {
    (FLOAT..CHAR).contains(&bits).then(|| f64::from_bits(bits - FLOAT))
}

/// The word of a character.
pub const fn character(character: char) -> u64 {
    CHAR | character as u64
}

/// The character.
pub fn as_character(bits: u64) -> Option<char> {
    if bits & !PAYLOAD != CHAR { None } else { char::from_u32((bits & PAYLOAD) as u32) }
}

/// The word of a truth value.
#[inline(always)]
pub const fn boolean(holds: bool) -> u64 {
    if holds { TRUE } else { FALSE }
}

/// The word of a built-in procedure, by its number.
pub const fn primitive(number: usize) -> u64 {
    PRIMITIVE | number as u64
}

/// The procedure's number.
#[inline(always)]
pub const fn as_primitive(bits: u64) -> Option<usize> {
    if bits & !PAYLOAD == PRIMITIVE { Some((bits & PAYLOAD) as usize) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_encode_their_types(wide in any::<i64>(), bits in any::<u64>(), letter in any::<char>()) {
            let number = wide >> (64 - INTEGER_BITS);
            prop_assert_eq!(as_integer(integer(number)), Some(number));
            prop_assert_eq!(as_float(integer(number)), None);
            let inexact = f64::from_bits(bits);
            let word = float(inexact);
            prop_assert!(word >= 1 << 48 && as_integer(word).is_none() && as_character(word).is_none());
            let back = as_float(word).unwrap();
            prop_assert!(back.to_bits() == bits || (back.is_nan() && inexact.is_nan()));
            prop_assert_eq!(as_character(character(letter)), Some(letter));
            prop_assert_eq!(as_primitive(character(letter)), None);
        }
    }

    #[test]
    fn the_extreme_integers_fit() {
        let most = (1i64 << (INTEGER_BITS - 1)) - 1;
        assert!(is_integer(most) && !is_integer(most + 1) && is_integer(-most - 1) && !is_integer(-most - 2));
        assert_eq!(as_integer(integer(-most - 1)), Some(-most - 1));
        for number in [f64::NEG_INFINITY, f64::INFINITY, -0.0, f64::MIN_POSITIVE] {
            assert_eq!(as_float(float(number)).map(f64::to_bits), Some(number.to_bits()));
        }
    }
}
