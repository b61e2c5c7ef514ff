//! The kernel's own functions and variables, by `/proc/kallsyms`.
//!
//! ```text
//! ffffffff81000000 T start                address, kind, name
//! ffffffffc0000000 t end   [driver]       ... and the loaded module that it is in
//! ```
//!
//! Users without privilege read every address as zero. The list has some 200,000 lines and is made as it is
//! read.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

/// The list of the running kernel.
pub const KALLSYMS: &str = "/proc/kallsyms";

/// One symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Symbol<'t> {
    /// Its address; 0 where it is hidden.
    pub address: u64,
    /// Its kind, as `nm` prints it: `t`, `T`, `w` and `W` are code.
    pub kind: &'t str,
    /// Its name.
    pub name: &'t str,
    /// The loaded module, in brackets.
    pub module: Option<&'t str>,
}

impl<'t> Symbol<'t> {
    /// The symbol in a line of `kallsyms`.
    pub fn parse(line: &'t str) -> Option<Symbol<'t>> {
        let mut words = line.split_ascii_whitespace();
        let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
        Some(Symbol { address: u64::from_str_radix(address, 16).ok()?, kind, name, module: words.next() })
    }

    /// True if it is code, at a known address.
    pub fn is_code(&self) -> bool {
        self.address != 0 && matches!(self.kind, "t" | "T" | "w" | "W")
    }
}

/// Calls `visit` with each symbol of a list until it returns `false`. Returns whether the list can be read.
pub fn each(list: impl AsRef<Path>, mut visit: impl FnMut(Symbol<'_>) -> bool) -> bool {
    let Ok(file) = File::open(list) else { return false };
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        if Symbol::parse(&line).is_some_and(|symbol| !visit(symbol)) {
            break;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_the_kernel_and_of_modules_are_read() {
        let symbol = |line| Symbol::parse(line).unwrap();
        let of_module = symbol("ffff3000 t end\t[driver]");
        assert_eq!((of_module.address, of_module.name), (0xffff_3000, "end"));
        assert_eq!((of_module.module, of_module.is_code()), (Some("[driver]"), true));
        assert!(!symbol("0000000000000000 T start").is_code() && !symbol("ffff2800 d data").is_code());
        assert_eq!(Symbol::parse("ffff2800 d"), None);
    }
}
