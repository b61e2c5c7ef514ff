//! A buffer on the stack for one line of text, for messages in code that may not allocate.

/// A line of text on the stack.
#[derive(Debug)]
pub struct Line {
    bytes: [u8; Line::LIMIT],
    len: usize,
}

impl Line {
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

    /// The bytes of the line so far.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Writes the line to standard error, to the program's also from a helper thread.
    pub fn write(&self) {
        crate::stderr::write(self.bytes());
    }
}

impl Default for Line {
    fn default() -> Self {
        Line::new()
    }
}
