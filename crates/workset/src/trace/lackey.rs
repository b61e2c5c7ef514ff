//! A reader of the text that valgrind's tool lackey writes with `--trace-mem=yes`.
//!
//! ```text
//! ==4711== Lackey, an example Valgrind tool      a message of valgrind: skipped
//! I  0401ab70,3                                  an instruction of 3 bytes at 0x401ab70
//!  S 1fff000668,8                                its store, load, and modify (both)
//!  L 0483b0a0,4
//!  M 04a1c2f8,4
//! ```
//!
//! Time is counted in instructions. An instruction is also a reference, to its page of code. An access that
//! crosses into another page is a reference to each.
//!
//! Invariants: the reader buffers at most [`LINE_MAX`] bytes of a line, and never stops at an unknown line.

use std::io::{BufRead, Read};

use super::{PageSize, Reference, TraceError};
use crate::unit::{Page, Ticks};

/// The longest line. Lackey writes no longer ones; these are skipped without being stored.
pub const LINE_MAX: usize = 256;

/// The largest access of a processor.
const ACCESS_MAX: u64 = 1 << 16;

/// The most characters of a bad line in an error.
const SHOWN_MAX: usize = 60;

/// A reader of lackey's text.
#[derive(Debug)]
pub struct Lackey<R> {
    source: R,
    pub(super) page_size: PageSize,
    line: Vec<u8>,
    lines: u64,
    pub(super) instructions: u64,
    /// The pages of an access that are not returned yet: the next, and the last.
    pages: Option<(u64, u64)>,
    failed: bool,
}

impl<R: BufRead> Lackey<R> {
    /// Reads from `source`.
    pub fn new(source: R, page_size: PageSize) -> Self {
        let line = Vec::with_capacity(LINE_MAX + 1);
        Self { source, page_size, line, lines: 0, instructions: 0, pages: None, failed: false }
    }

    /// Reads the next line without its end; `None` after the last.
    fn read_line(&mut self) -> Option<Result<(), TraceError>> {
        self.line.clear();
        let mut limited = (&mut self.source).take(LINE_MAX as u64 + 1);
        let mut read = limited.read_until(b'\n', &mut self.line);
        if self.line.len() > LINE_MAX && self.line.last() != Some(&b'\n') {
            read = self.source.skip_until(b'\n');
        }
        match read {
            Ok(0) if self.line.is_empty() => None,
            Ok(_) => {
                self.lines += 1;
                while let Some(b'\n' | b'\r') = self.line.last() {
                    self.line.pop();
                }
                Some(Ok(()))
            }
            Err(source) => {
                self.failed = true;
                Some(Err(TraceError::Read { units: self.lines, source }))
            }
        }
    }

    fn reference(&mut self) -> Option<Reference> {
        let (page, last) = self.pages?;
        self.pages = (page < last).then_some((page + 1, last));
        Some(Reference { page: Page(page), now: Ticks(self.instructions) })
    }

    fn understand(&mut self) -> Result<(), &'static str> {
        let instruction = match self.line.get(..3) {
            Some(b"I  ") => true,
            Some(b" L " | b" S " | b" M ") => false,
            // Valgrind's own lines are empty, or begin with the process number between these marks.
            _ if self.line.is_empty() || matches!(self.line.get(..2), Some(b"==" | b"--" | b"**")) => {
                return Ok(());
            }
            _ => return Err("lines begin with I, S, L or M"),
        };
        let (address, rest) = hexadecimal(&self.line[3..])?;
        let [b',', size @ ..] = rest else { return Err("no comma behind the address") };
        let size = decimal(size)?;
        if !(1..=ACCESS_MAX).contains(&size) {
            return Err("a size that no access has");
        }
        let Some(end) = address.checked_add(size - 1) else {
            return Err("an access beyond the last address");
        };
        self.instructions += u64::from(instruction);
        self.pages = Some((self.page_size.page_of(address).0, self.page_size.page_of(end).0));
        Ok(())
    }
}

impl<R: BufRead> Iterator for Lackey<R> {
    type Item = Result<Reference, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(reference) = self.reference() {
                return Some(Ok(reference));
            }
            if self.failed {
                return None;
            }
            if let Err(error) = self.read_line()? {
                return Some(Err(error));
            }
            let understood =
                if self.line.len() > LINE_MAX { Err("it is too long") } else { self.understand() };
            if let Err(why) = understood {
                let shown = &self.line[..self.line.len().min(SHOWN_MAX)];
                let text = String::from_utf8_lossy(shown).into_owned();
                return Some(Err(TraceError::Line { line: self.lines, why, text }));
            }
        }
    }
}

fn hexadecimal(text: &[u8]) -> Result<(u64, &[u8]), &'static str> {
    let (mut value, mut digits) = (0u64, 0);
    for byte in text {
        let Some(digit) = char::from(*byte).to_digit(16) else { break };
        value = value << 4 | u64::from(digit);
        digits += 1;
    }
    match digits {
        0 => Err("no address"),
        1..=16 => Ok((value, &text[digits..])),
        _ => Err("an address of more than 64 bits"),
    }
}

fn decimal(text: &[u8]) -> Result<u64, &'static str> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits == 0 || digits != text.len() || digits > 9 {
        return Err("no size behind the comma");
    }
    Ok(text.iter().fold(0, |value, byte| value * 10 + u64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::BufReader;

    fn read(text: &[u8]) -> Vec<Result<Reference, TraceError>> {
        Lackey::new(text, PageSize::BASE).collect()
    }

    fn at(page: u64, now: u64) -> Reference {
        Reference { page: Page(page), now: Ticks(now) }
    }

    #[test]
    fn valgrinds_output_is_read() {
        let text =
            b"==16508== Lackey, an example Valgrind tool\n==16508== \nI  0401ab70,3\n S 1fff000668,8\n\
            I  04001ffe,5\n M 04a1c2f8,4\n L 00000fff,2\r\n==16508== Exit code:       0";
        let references: Vec<Reference> = read(text).into_iter().map(Result::unwrap).collect();
        let first = [0x401a, 0x01ff_f000].map(|page| at(page, 1));
        let second = [0x4001, 0x4002, 0x4a1c, 0, 1].map(|page| at(page, 2));
        assert_eq!(references, [&first[..], &second].concat());
    }

    #[test]
    fn bad_lines_are_reported_by_number_and_skipped() {
        let long = "x".repeat(100_000);
        let text = format!(
            "I  04,3\nhello\n L zz,1\n L 12\n L 12,\n L 12,0\n L 12,4x\n L 11112222333344445,1\n L ffffffffffffffff,2\n\
             {long}\n\nI  04,3\n L 12,999999\nI\n"
        );
        let all = read(text.as_bytes());
        let good: Vec<_> = all.iter().flatten().map(|reference| reference.now.0).collect();
        assert_eq!(good, [1, 2]);
        let lines: Vec<u64> = all
            .iter()
            .filter_map(|read| match read {
                Err(TraceError::Line { line, text, .. }) => {
                    assert!(text.len() <= SHOWN_MAX);
                    Some(*line)
                }
                _ => None,
            })
            .collect();
        assert_eq!(lines, [2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14]);
        assert!(all.iter().flat_map(|read| read.as_ref().err()).all(TraceError::can_go_on));
    }

    #[test]
    fn a_failing_source_ends_the_trace() {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("gone"))
            }
        }
        let mut lackey = Lackey::new(BufReader::new(Fails), PageSize::BASE);
        assert!(matches!(lackey.next(), Some(Err(TraceError::Read { units: 0, .. }))));
        assert!(lackey.next().is_none());
    }
}
