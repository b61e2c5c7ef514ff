//! The setting that makes a heap check itself, and the parser of the setting's text form (`VELLUM_GC_EAGER`).

use crate::config::Config;
use vellum_sys::text;

/// The user's choice of checks: every invariant is checked, dead objects are overwritten, and one allocation
/// in `mean` collects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strict {
    /// [`Config::eager`], 1 at least.
    pub mean: u32,
    /// [`Config::seed`].
    pub seed: u64,
}

impl Strict {
    /// Parses `MEAN` or `MEAN,seed=SEED`; `None` if it is neither.
    pub fn parse(words: &[u8]) -> Option<Strict> {
        let mut words = words.split(|&byte| byte == b',');
        let mean = u32::try_from(text::decimal(words.next()?)?).ok().filter(|&mean| mean > 0)?;
        let seed = words.next().map_or(Some(0), |word| text::decimal(word.strip_prefix(b"seed=")?))?;
        words.next().is_none().then_some(Strict { mean, seed })
    }

    /// `config` with these settings in place of those it has.
    pub(crate) fn put_on(self, config: Config) -> Config {
        Config { eager: self.mean, seed: self.seed, paranoid: true, poison: true, ..config }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_says_is_a_mean_and_a_seed() {
        assert_eq!(Strict::parse(b"1"), Some(Strict { mean: 1, seed: 0 }));
        assert_eq!(Strict::parse(b"300,seed=17"), Some(Strict { mean: 300, seed: 17 }));
        for wrong in "|0|yes|-1|1,|1,17|1,seed=|1,seed=x|1,seed=1,|4294967296".split('|') {
            assert_eq!(Strict::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
