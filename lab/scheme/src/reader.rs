//! The reader: turns text into data (R7RS, sections 7.1.1 and 7.1.2), by recursive descent.
//!
//! # Limits
//! Data nest at most [`DEPTH_MAX`] deep; deeper nesting is an error instead of a stack overflow. Integers
//! have [`INTEGER_BITS`] bits; a larger literal is also an error.

use crate::datum::{Datum, Place, Shape, SyntaxError};
use crate::immediate::{INTEGER_BITS, is_integer};

/// Greatest nesting of lists and vectors in a program.
pub const DEPTH_MAX: usize = 256;

/// Names of characters.
pub const CHARACTERS: [(&str, char); 9] = [
    ("space", ' '),
    ("newline", '\n'),
    ("tab", '\t'),
    ("return", '\r'),
    ("null", '\0'),
    ("alarm", '\u{7}'),
    ("backspace", '\u{8}'),
    ("delete", '\u{7f}'),
    ("escape", '\u{1b}'),
];

/// Reads data from a text, one after the other.
#[derive(Debug)]
pub struct Reader<'t> {
    rest: std::str::Chars<'t>,
    place: Place,
    depth: usize,
}

type Read<T> = Result<T, SyntaxError>;

impl<'t> Reader<'t> {
    /// A reader at the beginning of a text, with the text's number.
    pub fn new(text: &'t str, source: u32) -> Reader<'t> {
        Reader { rest: text.chars(), place: Place { source, line: 1, column: 1 }, depth: 0 }
    }

    /// The unread text.
    pub fn rest(&self) -> &'t str {
        self.rest.as_str()
    }

    /// The next datum; `None` at the end.
    ///
    /// # Errors
    /// If the text is no datum.
    pub fn next_datum(&mut self) -> Read<Option<Datum>> {
        self.skip_space()?;
        if self.peek().is_none() { Ok(None) } else { self.datum().map(Some) }
    }

    fn peek(&self) -> Option<char> {
        self.rest.clone().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.rest.next()?;
        if next == '\n' {
            self.place = Place { line: self.place.line + 1, column: 1, ..self.place };
        } else {
            self.place.column += 1;
        }
        Some(next)
    }

    fn skip_space(&mut self) -> Read<()> {
        loop {
            let rest = self.rest.as_str();
            if rest.starts_with(char::is_whitespace) {
                self.next();
            } else if rest.starts_with(';') {
                while self.next().is_some_and(|skipped| skipped != '\n') {}
            } else if rest.starts_with("#|") {
                self.skip_block()?;
            } else if rest.starts_with("#;") {
                let place = self.place;
                self.next();
                self.next();
                self.deeper(place, |this| {
                    this.skip_space()?;
                    if this.peek().is_none() {
                        return Err(incomplete(place, "a datum was expected after #;"));
                    }
                    this.datum()
                })?;
            } else {
                return Ok(());
            }
        }
    }

    fn skip_block(&mut self) -> Read<()> {
        let (start, mut open) = (self.place, 0);
        loop {
            let rest = self.rest.as_str();
            let step = if rest.starts_with("#|") {
                1
            } else if rest.starts_with("|#") {
                -1
            } else {
                0
            };
            if step != 0 {
                self.next();
                open += step;
            }
            if self.next().is_none() {
                return Err(incomplete(start, "this comment is not closed by |#"));
            }
            if open == 0 {
                return Ok(());
            }
        }
    }

    fn datum(&mut self) -> Read<Datum> {
        let place = self.place;
        let shape = self.deeper(place, |this| this.shape(place))?;
        Ok(Datum { place, shape })
    }

    fn deeper<T>(&mut self, place: Place, inside: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth == DEPTH_MAX {
            return Err(SyntaxError::new(place, format_args!("data nest more than {DEPTH_MAX} deep")));
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result
    }

    fn shape(&mut self, place: Place) -> Read<Shape> {
        match self.peek() {
            Some('(' | '[') => {
                let open = self.next();
                let close = if open == Some('(') { ')' } else { ']' };
                let (elements, tail) = self.elements(place, close, true)?;
                Ok(match tail.map(|tail| *tail) {
                    // `(a . (b c))` is `(a b c)`.
                    Some(Datum { shape: Shape::List(more, tail), .. }) => {
                        Shape::List(elements.into_iter().chain(more).collect(), tail)
                    }
                    tail => Shape::List(elements, tail.map(Box::new)),
                })
            }
            Some(')' | ']') => Err(SyntaxError::new(place, "this parenthesis closes nothing")),
            Some('"') => self.text().map(|text| Shape::Text(text.into())),
            Some('\'') => self.abbreviated("quote"),
            Some('`') => self.abbreviated("quasiquote"),
            Some(',') if self.rest.as_str().starts_with(",@") => {
                self.next();
                self.abbreviated("unquote-splicing")
            }
            Some(',') => self.abbreviated("unquote"),
            Some('|') => {
                self.next();
                self.until('|', place).map(|name| Shape::Symbol(name.into()))
            }
            Some('#') => self.hash(place),
            _ => {
                let word = self.word();
                match number(&word, 10).map_err(|message| SyntaxError::new(place, message))? {
                    Some(number) => Ok(number),
                    None if word == "." => Err(SyntaxError::new(place, "a dot has no place here")),
                    None => Ok(Shape::Symbol(word.into())),
                }
            }
        }
    }

    fn abbreviated(&mut self, name: &str) -> Read<Shape> {
        let place = self.place;
        self.next();
        self.skip_space()?;
        if self.peek().is_none() {
            return Err(incomplete(place, format!("a datum was expected after the sign of {name}")));
        }
        let quoted = self.datum()?;
        Ok(Shape::List(vec![Datum::symbol(place, name), quoted], None))
    }

    fn elements(
        &mut self,
        start: Place,
        close: char,
        may_have_tail: bool,
    ) -> Read<(Vec<Datum>, Option<Box<Datum>>)> {
        let (mut elements, mut tail) = (Vec::new(), None);
        loop {
            self.skip_space()?;
            match self.peek() {
                None => return Err(incomplete(start, "this parenthesis is not closed")),
                Some(next) if next == close => {
                    self.next();
                    return Ok((elements, tail));
                }
                Some(next @ (')' | ']')) => {
                    let message = format_args!("{close} was expected, not {next}");
                    return Err(SyntaxError::new(self.place, message));
                }
                Some(_) if tail.is_some() => {
                    return Err(SyntaxError::new(self.place, "one datum only may follow a dot"));
                }
                Some('.')
                    if may_have_tail
                        && self.rest.clone().nth(1).is_none_or(ends_word)
                        && !elements.is_empty() =>
                {
                    let place = self.place;
                    self.next();
                    self.skip_space()?;
                    if self.peek().is_none_or(|next| next == close) {
                        return Err(SyntaxError::new(place, "a datum was expected after the dot"));
                    }
                    tail = Some(Box::new(self.datum()?));
                }
                Some(_) => elements.push(self.datum()?),
            }
        }
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while let Some(next) = self.peek().filter(|&next| !ends_word(next)) {
            word.push(next);
            self.next();
        }
        word
    }

    fn until(&mut self, end: char, start: Place) -> Read<String> {
        let mut found = String::new();
        loop {
            let place = self.place;
            match self.next() {
                None => return Err(incomplete(start, format!("{end} was expected before the end"))),
                Some(next) if next == end => return Ok(found),
                Some('\\') => self.escape(place, &mut found)?,
                Some(next) => found.push(next),
            }
        }
    }

    fn text(&mut self) -> Read<String> {
        let start = self.place;
        self.next();
        self.until('"', start)
    }

    fn escape(&mut self, place: Place, into: &mut String) -> Read<()> {
        let wrong = |what| SyntaxError::new(place, format_args!("{what} after a backslash is not known"));
        match self.next() {
            Some('n') => into.push('\n'),
            Some('t') => into.push('\t'),
            Some('r') => into.push('\r'),
            Some('a') => into.push('\u{7}'),
            Some('b') => into.push('\u{8}'),
            Some(next @ ('"' | '\\' | '|')) => into.push(next),
            Some('x') => {
                let code = self.until(';', place)?;
                let found = u32::from_str_radix(&code, 16).ok().and_then(char::from_u32);
                into.push(found.ok_or_else(|| wrong(format!("x{code};")))?);
            }
            Some('\n') => {
                while self.peek().is_some_and(|next| next == ' ' || next == '\t') {
                    self.next();
                }
            }
            Some(next) => return Err(wrong(next.to_string())),
            None => return Err(incomplete(place, "the text ends after a backslash")),
        }
        Ok(())
    }

    fn hash(&mut self, place: Place) -> Read<Shape> {
        self.next();
        match self.peek() {
            Some('(') => {
                self.next();
                Ok(Shape::Vector(self.elements(place, ')', false)?.0))
            }
            Some('\\') => {
                self.next();
                let first = self.next().ok_or_else(|| incomplete(place, "a character was expected"))?;
                let name = format!("{first}{}", self.word());
                character(&name)
                    .map(Shape::Char)
                    .ok_or_else(|| SyntaxError::new(place, format_args!("there is no character #\\{name}")))
            }
            _ => {
                let word = self.word();
                let wrong = |message: &str| SyntaxError::new(place, message);
                match &*word {
                    "t" | "true" => Ok(Shape::Boolean(true)),
                    "f" | "false" => Ok(Shape::Boolean(false)),
                    "u8" if self.peek() == Some('(') => {
                        self.next();
                        let bytes = self.elements(place, ')', false)?.0.into_iter().map(|byte| {
                            let number = match byte.shape {
                                Shape::Integer(number) => u8::try_from(number).ok(),
                                _ => None,
                            };
                            number.ok_or_else(|| SyntaxError::new(byte.place, "a byte is 0 to 255"))
                        });
                        bytes.collect::<Read<_>>().map(Shape::Bytes)
                    }
                    _ => {
                        let radix = match word.chars().next() {
                            Some('x') => 16,
                            Some('b') => 2,
                            Some('o') => 8,
                            Some('d') => 10,
                            _ => return Err(wrong(&format!("#{word} is not known"))),
                        };
                        let found = number(&word[1..], radix).map_err(|message| wrong(&message))?;
                        found.ok_or_else(|| wrong(&format!("#{word} is no number")))
                    }
                }
            }
        }
    }
}

fn incomplete(place: Place, message: impl Into<String>) -> SyntaxError {
    SyntaxError { place, message: message.into(), is_incomplete: true }
}

fn ends_word(next: char) -> bool {
    next.is_whitespace() || matches!(next, '(' | ')' | '[' | ']' | '"' | ';' | '\'' | '`' | ',' | '|')
}

/// The character with this name: a standard name, `x41`, or the character itself.
fn character(name: &str) -> Option<char> {
    let mut chars = name.chars();
    if let (Some(only), None) = (chars.next(), chars.next()) {
        return Some(only);
    }
    if let Some((_, found)) = CHARACTERS.iter().find(|(known, _)| *known == name) {
        return Some(*found);
    }
    u32::from_str_radix(name.strip_prefix('x')?, 16).ok().and_then(char::from_u32)
}

/// The number, if the word is one.
///
/// # Errors
/// If the number is an integer that does not fit.
pub fn number(word: &str, radix: u32) -> Result<Option<Shape>, String> {
    let digits = word.strip_prefix(['+', '-']).unwrap_or(word);
    if !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix)) {
        let found = i64::from_str_radix(word, radix).ok().filter(|&number| is_integer(number));
        let found = found.ok_or_else(|| format!("{word} is no integer of {INTEGER_BITS} bits"));
        return found.map(|number| Some(Shape::Integer(number)));
    }
    Ok(match word {
        _ if radix != 10 => None,
        "+inf.0" => Some(Shape::Float(f64::INFINITY)),
        "-inf.0" => Some(Shape::Float(f64::NEG_INFINITY)),
        "+nan.0" | "-nan.0" => Some(Shape::Float(f64::NAN)),
        // Rust's names of special numbers (such as `inf`) are symbols here.
        _ if digits.starts_with(|first: char| first.is_ascii_digit() || first == '.') => {
            word.parse().ok().map(Shape::Float)
        }
        _ => None,
    })
}
