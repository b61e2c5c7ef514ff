//! Data as the reader returns them, with their places in the text.
//!
//! The compiler works on data instead of values on the heap. It therefore needs no scope, its errors have
//! places, and a program that is only read costs the collector nothing.

use std::fmt;
use std::rc::Rc;

/// Where something stands: lines and columns are counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Which of the sources that a machine has read.
    pub source: u32,
    /// 0: nowhere.
    pub line: u32,
    /// In characters.
    pub column: u32,
}

/// Something that is wrong with a program before it runs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// Where.
    pub place: Place,
    /// What.
    pub message: String,
    /// Whether more text could mend it: the interactive loop reads on then.
    pub is_incomplete: bool,
}

impl SyntaxError {
    /// One that more text does not mend.
    pub fn new(place: Place, message: impl fmt::Display) -> SyntaxError {
        SyntaxError { place, message: message.to_string(), is_incomplete: false }
    }
}

/// What a datum is.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// `#t`, `#f`.
    Boolean(bool),
    /// An exact number.
    Integer(i64),
    /// An inexact one.
    Float(f64),
    /// `#\a`.
    Char(char),
    /// `"text"`.
    Text(Rc<str>),
    /// `name`.
    Symbol(Rc<str>),
    /// `(a b)`, or with a tail that is no list, `(a . b)`.
    List(Vec<Datum>, Option<Box<Datum>>),
    /// `#(a b)`.
    Vector(Vec<Datum>),
    /// `#u8(1 2)`.
    Bytes(Vec<u8>),
}

/// A datum and its place.
#[derive(Clone, Debug)]
pub struct Datum {
    /// Where it begins.
    pub place: Place,
    /// What it is.
    pub shape: Shape,
}

impl PartialEq for Datum {
    /// Places do not count.
    fn eq(&self, other: &Datum) -> bool {
        self.shape == other.shape
    }
}

impl Datum {
    /// A symbol that stands there.
    pub fn symbol(place: Place, name: &str) -> Datum {
        Datum { place, shape: Shape::Symbol(name.into()) }
    }

    /// A list that stands there.
    pub fn list(place: Place, elements: impl Into<Vec<Datum>>) -> Datum {
        Datum { place, shape: Shape::List(elements.into(), None) }
    }

    /// `(name element ...)`.
    pub fn form(place: Place, name: &str, elements: impl IntoIterator<Item = Datum>) -> Datum {
        let name = std::iter::once(Datum::symbol(place, name));
        Datum::list(place, name.chain(elements).collect::<Vec<_>>())
    }

    /// `(quote datum)`.
    #[must_use]
    pub fn quoted(self) -> Datum {
        Datum::form(self.place, "quote", [self])
    }

    /// A symbol's name.
    pub fn as_symbol(&self) -> Option<&Rc<str>> {
        match &self.shape {
            Shape::Symbol(name) => Some(name),
            _ => None,
        }
    }

    /// A proper list's elements.
    pub fn as_list(&self) -> Option<&[Datum]> {
        match &self.shape {
            Shape::List(elements, None) => Some(elements),
            _ => None,
        }
    }

    /// Whether it is the symbol of that name.
    pub fn is(&self, name: &str) -> bool {
        self.as_symbol().is_some_and(|own| &**own == name)
    }

    /// A proper list's elements, if it begins with the symbol.
    pub fn as_form(&self, name: &str) -> Option<&[Datum]> {
        self.as_list().filter(|elements| elements.first().is_some_and(|first| first.is(name)))
    }
}
