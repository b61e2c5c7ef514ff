//! Splits a line into words, each with its position in the line.

/// A word with the column where it begins.
pub(super) type Word<'a> = (usize, &'a str);

/// The words of a line, separated by spaces or tabs, with their columns (bytes from 1).
#[derive(Debug, Clone)]
pub(super) struct Words<'a> {
    rest: &'a str,
    column: usize,
}

impl<'a> Words<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, column: 1 }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = Word<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let bytes = self.rest.as_bytes();
        let start = bytes.iter().position(|byte| !is_blank(byte))?;
        let end = bytes[start..].iter().position(is_blank).map_or(bytes.len(), |length| start + length);
        let (word, column) = (&self.rest[start..end], self.column + start);
        self.rest = &self.rest[end..];
        self.column += end;
        Some((column, word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn columns_are_the_starts_of_words(text in "[ \ta-cé]{0,30}") {
            for (column, word) in Words::new(&text) {
                prop_assert!(text[column - 1..].starts_with(word) && !word.is_empty());
            }
            let all: String = Words::new(&text).map(|(_, word)| word).collect();
            prop_assert_eq!(all, text.replace([' ', '\t'], ""));
        }
    }
}
