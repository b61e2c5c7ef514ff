//! What is said when the program misuses its memory, and the end of it.
//!
//! One line on standard error, written without allocating, then `abort`: memory whose bookkeeping is known to be
//! wrong must not be used further. What is caught always: a large block freed twice, an address inside a large block,
//! an address outside every block's space. What is caught when it shows: a small block freed twice with nothing freed or
//! allocated of its slab in between, and one freed after its whole slab went back.

use vellum_pages::Misuse;

/// Ends the process for passing `address` to `function`.
#[cold]
#[inline(never)]
pub(crate) fn refuse(function: &str, address: *const u8, misuse: Misuse) -> ! {
    let mut line = Line::new();
    line.text("vellum: ").text(function).text("(0x").hex(address as usize).text("): ");
    match misuse {
        Misuse::NotOurs => line.text("this address was never handed out, or its memory has gone back since"),
        Misuse::InsideBlock { start } => line.text("the address lies inside the block at 0x").hex(start),
        Misuse::AlreadyFree => line.text("the block is already free"),
    };
    line.text("\n").write();
    // SAFETY: abort has no preconditions.
    unsafe { libc::abort() }
}

/// A line of text on the stack.
#[derive(Debug)]
pub struct Line {
    bytes: [u8; Line::LIMIT],
    len: usize,
}

impl Line {
    /// Longer lines are cut.
    const LIMIT: usize = 512;

    /// An empty line.
    pub fn new() -> Line {
        Line { bytes: [0; Line::LIMIT], len: 0 }
    }

    /// Appends `text`.
    pub fn text(&mut self, text: &str) -> &mut Line {
        self.raw(text.as_bytes())
    }

    /// Appends bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Line {
        let fits = bytes.len().min(Line::LIMIT - self.len);
        self.bytes[self.len..self.len + fits].copy_from_slice(&bytes[..fits]);
        self.len += fits;
        self
    }

    /// Appends `value` in hexadecimal.
    pub fn hex(&mut self, value: usize) -> &mut Line {
        self.number(value as u64, 16)
    }

    /// Appends `value` in decimal.
    pub fn decimal(&mut self, value: u64) -> &mut Line {
        self.number(value, 10)
    }

    fn number(&mut self, mut value: u64, base: u64) -> &mut Line {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        loop {
            at -= 1;
            digits[at] = b"0123456789abcdef"[(value % base) as usize];
            value /= base;
            if value == 0 {
                return self.raw(&digits[at..]);
            }
        }
    }

    /// What the line says so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Writes the line to standard error.
    pub fn write(&self) {
        // SAFETY: the bytes up to `len` are ours.
        unsafe { libc::write(libc::STDERR_FILENO, self.bytes.as_ptr().cast(), self.len) };
    }
}

impl Default for Line {
    fn default() -> Self {
        Line::new()
    }
}
