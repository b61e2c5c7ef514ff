//! Whole numbers of any size, each value one block of the allocator under test.
//!
//! Every operation returns a fresh block and frees nothing but by drop: arithmetic as programs with a naive
//! number type do it, a malloc and a free for each intermediate result. Layout: a 32-bit count, then that
//! many 32-bit digits, lowest first, the highest not zero.

use super::raw;
use std::cmp::Ordering;

/// A whole number, zero or more.
pub(crate) struct Big(*mut u32);

impl Drop for Big {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the block this value owns, made in `with_room`.
        unsafe { raw::free(self.0.cast()) };
    }
}

impl Clone for Big {
    fn clone(&self) -> Self {
        let mut copy = Self::with_room(self.digits().len());
        copy.digits_mut().copy_from_slice(self.digits());
        copy
    }
}

impl From<u64> for Big {
    fn from(value: u64) -> Self {
        let mut big = Self::with_room(2);
        big.digits_mut().copy_from_slice(&[value as u32, (value >> 32) as u32]);
        big.trimmed()
    }
}

impl Big {
    /// A number of `digits` zero digits, to be filled.
    #[inline]
    fn with_room(digits: usize) -> Self {
        let block = raw::malloc((digits + 1) * 4).cast::<u32>();
        // SAFETY: the block holds the count and the digits.
        unsafe {
            block.write(digits as u32);
            block.add(1).write_bytes(0, digits);
        }
        Self(block)
    }

    #[inline]
    fn digits(&self) -> &[u32] {
        // SAFETY: the count is followed by that many digits, written when the block was made.
        unsafe { std::slice::from_raw_parts(self.0.add(1), *self.0 as usize) }
    }

    #[inline]
    fn digits_mut(&mut self) -> &mut [u32] {
        // SAFETY: as in `digits`, and borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(1), *self.0 as usize) }
    }

    /// Leaves out zero digits at the top.
    fn trimmed(self) -> Self {
        let used = self.digits().iter().rposition(|d| *d != 0).map_or(0, |top| top + 1);
        // SAFETY: the count is the first word of the block; a smaller one is always true of it.
        unsafe { self.0.write(used as u32) };
        self
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits().is_empty()
    }

    pub(crate) fn is(&self, value: u32) -> bool {
        if value == 0 { self.is_zero() } else { self.digits() == [value] }
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        let (a, b) = (self.digits(), other.digits());
        a.len().cmp(&b.len()).then_with(|| a.iter().rev().cmp(b.iter().rev()))
    }

    pub(crate) fn add(&self, other: &Self) -> Self {
        let (long, short) =
            if self.digits().len() >= other.digits().len() { (self, other) } else { (other, self) };
        let mut sum = Self::with_room(long.digits().len() + 1);
        let mut carry = 0u64;
        for (place, digit) in sum.digits_mut().iter_mut().enumerate() {
            let at = |n: &Self| n.digits().get(place).copied().map_or(0, u64::from);
            carry += at(long) + at(short);
            *digit = carry as u32;
            carry >>= 32;
        }
        sum.trimmed()
    }

    /// `self - other`, which must not be below zero.
    pub(crate) fn sub(&self, other: &Self) -> Self {
        let mut rest = Self::with_room(self.digits().len());
        let mut borrow = 0i64;
        for (place, digit) in rest.digits_mut().iter_mut().enumerate() {
            borrow +=
                i64::from(self.digits()[place]) - other.digits().get(place).copied().map_or(0, i64::from);
            *digit = borrow as u32;
            borrow >>= 32;
        }
        assert!(borrow == 0, "cfrac: a difference of whole numbers went below zero");
        rest.trimmed()
    }

    pub(crate) fn mul(&self, other: &Self) -> Self {
        let mut product = Self::with_room(self.digits().len() + other.digits().len());
        for (place, a) in self.digits().iter().enumerate() {
            let mut carry = 0u64;
            let digits = &mut product.digits_mut()[place..];
            for (step, digit) in digits.iter_mut().enumerate() {
                let b = other.digits().get(step).copied().map_or(0, u64::from);
                carry += u64::from(*digit) + u64::from(*a) * b;
                *digit = carry as u32;
                carry >>= 32;
            }
        }
        product.trimmed()
    }

    /// Quotient and remainder by a single digit.
    pub(crate) fn div_digit(&self, by: u32) -> (Self, u32) {
        let mut quotient = Self::with_room(self.digits().len());
        let mut rest = 0u64;
        for place in (0..self.digits().len()).rev() {
            rest = rest << 32 | u64::from(self.digits()[place]);
            quotient.digits_mut()[place] = (rest / u64::from(by)) as u32;
            rest %= u64::from(by);
        }
        (quotient.trimmed(), rest as u32)
    }

    /// Quotient and remainder: schoolbook division in base 2^32 (Knuth, volume 2, algorithm D).
    pub(crate) fn div(&self, by: &Self) -> (Self, Self) {
        assert!(!by.is_zero(), "cfrac: division by zero");
        if self.compare(by) == Ordering::Less {
            return (Self::from(0), self.clone());
        }
        let n = by.digits().len();
        if n == 1 {
            let (quotient, rest) = self.div_digit(by.digits()[0]);
            return (quotient, Self::from(u64::from(rest)));
        }
        // Shifted so that the divisor's top bit is set: then a guess from two digits is at most two too high.
        let shift = by.digits()[n - 1].leading_zeros();
        let divisor = by.shifted(shift);
        let mut rest = self.shifted_wide(shift);
        let mut quotient = Self::with_room(self.digits().len() - n + 1);
        for place in (0..quotient.digits().len()).rev() {
            let mut guess = guess_digit(&rest.digits()[place..=place + n], divisor.digits());
            while !subtract(&mut rest.digits_mut()[place..=place + n], divisor.digits(), guess) {
                guess -= 1;
            }
            quotient.digits_mut()[place] = guess as u32;
        }
        (quotient.trimmed(), rest.unshifted(shift))
    }

    fn shifted(&self, bits: u32) -> Self {
        self.shifted_wide(bits).trimmed()
    }

    /// Shifted up by less than a digit, with one digit more than before, perhaps zero.
    fn shifted_wide(&self, bits: u32) -> Self {
        let mut out = Self::with_room(self.digits().len() + 1);
        for (place, digit) in self.digits().iter().enumerate() {
            let wide = u64::from(*digit) << bits;
            out.digits_mut()[place] |= wide as u32;
            out.digits_mut()[place + 1] = (wide >> 32) as u32;
        }
        out
    }

    fn unshifted(mut self, bits: u32) -> Self {
        let len = self.digits().len();
        for place in 0..len {
            let above = self.digits().get(place + 1).copied().map_or(0, u64::from);
            let wide = (above << 32 | u64::from(self.digits()[place])) >> bits;
            self.digits_mut()[place] = wide as u32;
        }
        self.trimmed()
    }

    pub(crate) fn rem(&self, by: &Self) -> Self {
        self.div(by).1
    }

    /// The largest number whose square is not above this one (Newton's iteration from above).
    pub(crate) fn root(&self) -> Self {
        if self.is_zero() {
            return Self::from(0);
        }
        let mut guess = Self::with_room(self.digits().len() / 2 + 1);
        if let Some(top) = guess.digits_mut().last_mut() {
            *top = u32::MAX;
        }
        loop {
            let (next, _) = guess.add(&self.div(&guess).0).div_digit(2);
            if next.compare(&guess) != Ordering::Less {
                return guess;
            }
            guess = next;
        }
    }

    pub(crate) fn gcd(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.clone(), other.clone());
        while !b.is_zero() {
            let rest = a.rem(&b);
            a = std::mem::replace(&mut b, rest);
        }
        a
    }
}

/// A digit of the quotient, exact or up to two too high, from the top of the dividend and a normalised
/// divisor.
fn guess_digit(top: &[u32], divisor: &[u32]) -> u64 {
    let n = divisor.len();
    let two = u64::from(top[n]) << 32 | u64::from(top[n - 1]);
    (two / u64::from(divisor[n - 1])).min(u64::from(u32::MAX))
}

/// Takes `divisor * digit` from `from` if it is not more than it; says whether it did.
fn subtract(from: &mut [u32], divisor: &[u32], digit: u64) -> bool {
    let run = |write: &mut dyn FnMut(usize, u32), from: &[u32]| {
        let (mut carry, mut borrow) = (0u64, 0i64);
        for (place, old) in from.iter().enumerate() {
            carry += divisor.get(place).copied().map_or(0, u64::from) * digit;
            borrow += i64::from(*old) - i64::from(carry as u32);
            write(place, borrow as u32);
            borrow >>= 32;
            carry >>= 32;
        }
        carry == 0 && borrow == 0
    };
    if !run(&mut |_, _| {}, from) {
        return false;
    }
    let old: [u32; DIGITS_MAX] = std::array::from_fn(|place| from.get(place).copied().unwrap_or(0));
    run(&mut |place, digit| from[place] = digit, &old[..divisor.len() + 1])
}

/// No number here has more digits than this: the products of cfrac have two dozen.
const DIGITS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn big(value: u128) -> Big {
        let (high, low) = ((value >> 64) as u64, value as u64);
        let shift = Big::from(1 << 32).mul(&Big::from(1 << 32));
        Big::from(high).mul(&shift).add(&Big::from(low))
    }

    fn value(big: &Big) -> u128 {
        big.digits().iter().rev().fold(0, |n, d| n << 32 | u128::from(*d))
    }

    #[test]
    fn arithmetic_agrees_with_the_machine() {
        let mut rng = vellum_measure::Rng::new(8);
        for _ in 0..20_000 {
            let wide = |rng: &mut vellum_measure::Rng| {
                let bits = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
                bits >> rng.below(128)
            };
            let (a, b) = (wide(&mut rng), wide(&mut rng));
            let (x, y) = (big(a), big(b));
            assert_eq!(value(&x), a);
            assert_eq!(x.compare(&y), a.cmp(&b));
            if let Some(sum) = a.checked_add(b) {
                assert_eq!(value(&x.add(&y)), sum, "{a} + {b} (seed 8)");
            }
            if let Some(product) = a.checked_mul(b) {
                assert_eq!(value(&x.mul(&y)), product, "{a} * {b} (seed 8)");
            }
            if a >= b {
                assert_eq!(value(&x.sub(&y)), a - b, "{a} - {b} (seed 8)");
            }
            if let (Some(whole), Some(left)) = (a.checked_div(b), a.checked_rem(b)) {
                let (quotient, rest) = x.div(&y);
                assert_eq!((value(&quotient), value(&rest)), (whole, left), "{a} / {b} (seed 8)");
            }
            assert_eq!(value(&x.root()), a.isqrt(), "root of {a} (seed 8)");
        }
        assert!(big(12).gcd(&big(18)).is(6));
    }
}
