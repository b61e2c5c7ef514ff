//! Data: the syntax trees that the reader returns, with the position of each datum in the text.
//!
//! The compiler works on data instead of values on the heap. It therefore needs no scope, its errors have
//! positions, and a program that is only read costs the collector nothing.

use std::fmt;
use std::rc::Rc;

/// A position in a text; lines and columns are counted from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The number of the text, in the order in which a machine has read them.
    pub source: u32,
    /// The line; 0 for no place.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// An error in a program that is found before it runs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct SyntaxError {
    /// The place.
    pub place: Place,
    /// The message.
    pub message: String,
    /// Whether more text could complete the program; the interactive session then reads on.
    pub is_incomplete: bool,
}

impl SyntaxError {
    /// An error that more text cannot remove.
    pub fn new(place: Place, message: impl fmt::Display) -> SyntaxError {
        SyntaxError { place, message: message.to_string(), is_incomplete: false }
    }
}

/// The type and contents of a datum.
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

/// A datum and its position.
#[derive(Clone, Debug)]
pub struct Datum {
    /// The place of its beginning.
    pub place: Place,
    /// The type and contents.
    pub shape: Shape,
}

impl PartialEq for Datum {
    /// Compares without the places.
    fn eq(&self, other: &Datum) -> bool {
        self.shape == other.shape
    }
}

impl Datum {
    /// A symbol at a place.
    pub fn symbol(place: Place, name: &str) -> Datum {
        Datum { place, shape: Shape::Symbol(name.into()) }
    }

    /// A list at a place.
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

    /// Whether it is the symbol with this name.
    pub fn is(&self, name: &str) -> bool {
        self.as_symbol().is_some_and(|own| &**own == name)
    }

    /// A proper list's elements, if it begins with the symbol.
    pub fn as_form(&self, name: &str) -> Option<&[Datum]> {
        self.as_list().filter(|elements| elements.first().is_some_and(|first| first.is(name)))
    }
}
