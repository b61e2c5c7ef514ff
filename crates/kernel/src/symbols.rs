//! The addresses of the kernel's own functions and variables, by `/proc/kallsyms`.
//!
//! ```text
//! ffffffff81000000 T start                address, kind, name
//! ffffffffc0000000 t end   [driver]       ... and the loaded module that it is in
//! ```
//!
//! Users without privilege read every address as zero. The list has some 200,000 lines, which the kernel
//! makes as they are read.

use std::fs::File;
use std::io::{BufRead, BufReader};

/// Calls `visit` with the address and the name of each symbol, until it returns `false`.
pub fn each(mut visit: impl FnMut(u64, &str) -> bool) {
    let Ok(list) = File::open("/proc/kallsyms") else { return };
    for line in BufReader::new(list).lines().map_while(Result::ok) {
        if symbol(&line).is_some_and(|(address, name)| !visit(address, name)) {
            break;
        }
    }
}

pub(crate) fn symbol(line: &str) -> Option<(u64, &str)> {
    let mut words = line.split_ascii_whitespace();
    let address = u64::from_str_radix(words.next()?, 16).ok()?;
    Some((address, words.nth(1)?))
}

#[cfg(test)]
mod tests {
    use super::symbol;

    #[test]
    fn symbols_of_the_kernel_and_of_modules_are_read() {
        assert_eq!(symbol("ffff2800 T start"), Some((0xffff_2800, "start")));
        assert_eq!(symbol("ffff3000 t end\t[driver]"), Some((0xffff_3000, "end")));
        assert_eq!((symbol("ffff2800 d"), symbol("")), (None, None));
    }
}
