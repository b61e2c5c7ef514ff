//! The setting that chooses a sizing policy (the rule for when the heap collects) with the policy's
//! parameters. This file also parses the text form of the setting. Examples:
//!
//! ```text
//! knee                       original,mem_limit=24M,ratio=3
//! square_root,c=20           modified,mem_limit=9M,min_new_size=1M,min_old_incr=5500K
//! ```
//!
//! The parameters are named as in the appendix of Cooper, Nettles and Subramanian 1992. Its authors searched
//! for the values that are best for each program.

use vellum_sys::text;

/// The policy that sizes the heap's regions at each collection. Sizes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Sizing {
    /// By the costs of collections and page faults, and by the memory available: nothing to tune.
    #[default]
    Knee,
    /// The strategy of Standard ML of New Jersey (section 2 of the source).
    Original {
        /// The memory use target.
        mem_limit: usize,
        /// The target ratio of heap size to live size, [`Sizing::RATIO_MIN`] at least.
        ratio: u32,
    },
    /// The strategy of section 3 of the source: the part of the working set that the old region does not use
    /// is for new objects.
    Modified {
        /// The memory use target.
        mem_limit: usize,
        /// The minimum new heap size.
        min_new_size: usize,
        /// The minimum old heap increment.
        min_old_incr: usize,
    },
    /// The square-root rule of Kirisame, Shenoy and Panchekha 2022: `M = L + sqrt(L g / (c s))`, with L the
    /// live bytes, g the rate of allocation and s the speed of collection.
    SquareRoot {
        /// Their c, in thousandths a MiB: the smaller, the larger the heap. Not 0.
        c: u32,
    },
}

impl Sizing {
    /// The smallest ratio served: with 1 there would be no room beside live objects.
    pub const RATIO_MIN: u32 = 2;
    /// The default ratio.
    pub const RATIO: u32 = 3;
    /// The square-root rule's default c, in thousandths a MiB.
    pub const C: u32 = 20;

    /// Returns whether the parameters are served.
    ///
    /// # Errors
    /// Names the parameter that is not.
    pub fn check(self) -> Result<(), &'static str> {
        match self {
            Sizing::Original { ratio, .. } if ratio < Sizing::RATIO_MIN => Err("ratio"),
            Sizing::SquareRoot { c: 0 } => Err("c"),
            _ => Ok(()),
        }
    }

    /// Parses a user's choice: a policy's name, and after commas its parameters, `name=number`. Numbers of
    /// bytes are sizes such as `24M`. Missing parameters have their defaults; sizes, 0. `None` if it is
    /// invalid.
    pub fn parse(text: &[u8]) -> Option<Sizing> {
        let mut words = text.split(|&byte| byte == b',');
        let mut sizing = match words.next()? {
            b"knee" => Sizing::Knee,
            b"original" => Sizing::Original { mem_limit: 0, ratio: Sizing::RATIO },
            b"modified" => Sizing::Modified { mem_limit: 0, min_new_size: 0, min_old_incr: 0 },
            b"square_root" => Sizing::SquareRoot { c: Sizing::C },
            _ => return None,
        };
        for word in words {
            let equals = word.iter().position(|&byte| byte == b'=')?;
            sizing.set(&word[..equals], &word[equals + 1..])?;
        }
        sizing.check().ok().map(|()| sizing)
    }

    /// Sets the parameter called `name`; `None` if there is no such parameter, or no number.
    fn set(&mut self, name: &[u8], value: &[u8]) -> Option<()> {
        let (bytes, count): (Option<&mut usize>, Option<&mut u32>) = match (self, name) {
            (Sizing::Original { mem_limit, .. }, b"mem_limit") => (Some(mem_limit), None),
            (Sizing::Original { ratio, .. }, b"ratio") => (None, Some(ratio)),
            (Sizing::Modified { mem_limit, .. }, b"mem_limit") => (Some(mem_limit), None),
            (Sizing::Modified { min_new_size, .. }, b"min_new_size") => (Some(min_new_size), None),
            (Sizing::Modified { min_old_incr, .. }, b"min_old_incr") => (Some(min_old_incr), None),
            (Sizing::SquareRoot { c }, b"c") => (None, Some(c)),
            _ => return None,
        };
        if let Some(place) = bytes {
            *place = usize::try_from(text::size(value)?).ok()?;
        }
        if let Some(place) = count {
            *place = u32::try_from(text::decimal(value)?).ok()?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_written_as_the_appendix_has_them() {
        assert_eq!(Sizing::parse(b"knee"), Some(Sizing::Knee));
        let original = Sizing::Original { mem_limit: 24 << 20, ratio: 3 };
        assert_eq!(Sizing::parse(b"original,mem_limit=24M,ratio=3"), Some(original));
        assert_eq!(Sizing::parse(b"original,ratio=3,mem_limit=24M"), Some(original));
        let modified = Sizing::Modified { mem_limit: 0, min_new_size: 500 << 10, min_old_incr: 5_120_000 };
        assert_eq!(
            Sizing::parse(b"modified,mem_limit=0,min_new_size=500k,min_old_incr=5120000"),
            Some(modified)
        );
        assert_eq!(Sizing::parse(b"original"), Some(Sizing::Original { mem_limit: 0, ratio: Sizing::RATIO }));
        assert_eq!(Sizing::parse(b"square_root,c=50"), Some(Sizing::SquareRoot { c: 50 }));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            &b""[..],
            b"best",
            b"knee,c=1",
            b"original,min_new_size=1M",
            b"original,ratio=1",
            b"original,ratio",
            b"original,ratio=3x",
            b"original,ratio=",
            b"original,",
            b"modified,mem_limit=M",
            b"modified,mem_limit=99999999999999999999",
            b"modified,mem_limit=17179869184G",
            b"square_root,c=0",
            b"square_root,c=4294967296",
        ] {
            assert_eq!(Sizing::parse(text), None, "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn checks_name_the_parameter() {
        assert_eq!(Sizing::Original { mem_limit: 0, ratio: 1 }.check(), Err("ratio"));
        assert_eq!(Sizing::SquareRoot { c: 0 }.check(), Err("c"));
        assert_eq!(Sizing::Knee.check(), Ok(()));
    }
}
