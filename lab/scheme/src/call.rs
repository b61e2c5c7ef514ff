//! The interface of built-in procedures: the arguments, the result and the errors of a call.

use crate::fail::Fail;
use crate::machine::Machine;
use crate::memory::{Kind, Scope, Value};
use crate::printer;

/// A call of a procedure: its arguments lie on the machine's stack.
#[derive(Debug)]
pub struct Call<'a, 's> {
    /// The machine.
    pub machine: &'a mut Machine,
    /// The scope of the result.
    pub scope: &'a Scope<'s>,
    /// The place of the first argument on the stack.
    pub base: usize,
    /// The number of arguments.
    pub count: usize,
    /// The procedure's name, for errors; names used only by the prelude begin with `%`.
    pub name: &'static str,
}

/// The value of a call.
pub type Found<'s, T = Value<'s>> = Result<T, Fail<'s>>;
/// A built-in procedure.
pub type Primitive = for<'a, 'b, 's> fn(&'b mut Call<'a, 's>) -> Found<'s>;
/// A procedure's name, its least and greatest number of arguments, and the procedure.
pub type Row = (&'static str, usize, usize, Primitive);
/// Built-in procedures.
pub type Table = &'static [Row];
/// The greatest number of arguments of a procedure without such a limit.
pub const ANY: usize = usize::MAX;

/// The error of a procedure that was given an unexpected value.
#[cold]
pub fn wrong<'s>(scope: &Scope<'s>, name: &str, wanted: &str, given: &Value<'_>) -> Fail<'s> {
    match Value::pair(scope, given, &Value::nil()) {
        Ok(about) => Fail::Error(format!("{name}: {wanted} was expected, not"), Some(about)),
        Err(memory) => Fail::Memory(memory),
    }
}

impl<'s> Call<'_, 's> {
    /// An argument; unspecified if it is missing.
    #[inline]
    pub fn at(&self, index: usize) -> Value<'s> {
        if index >= self.count {
            return Value::unspecified();
        }
        self.machine.stack.get(self.base + index, self.scope)
    }

    /// An optional argument.
    pub fn maybe(&self, index: usize) -> Option<Value<'s>> {
        (index < self.count).then(|| self.at(index))
    }

    /// Checks the number of arguments.
    ///
    /// # Errors
    /// If there are fewer or more.
    #[inline]
    pub fn takes(&self, least: usize, most: usize) -> Found<'s, ()> {
        if (least..=most).contains(&self.count) {
            return Ok(());
        }
        let wanted = match most {
            ANY => format!("at least {least}"),
            _ if least == most => least.to_string(),
            _ => format!("{least} to {most}"),
        };
        Err(Fail::error(format!("{} takes {wanted} arguments, not {}", self.name, self.count)))
    }

    /// The error that an argument has the wrong type.
    #[cold]
    pub fn wrong(&self, wanted: &str, index: usize) -> Fail<'s> {
        wrong(self.scope, self.name.trim_start_matches('%'), wanted, &self.at(index))
    }

    /// Whether the argument is of this kind, as a Scheme boolean.
    pub fn is(&self, kind: Kind) -> Found<'s> {
        Ok(Value::boolean(self.at(0).is_a(kind)))
    }

    /// An argument of this kind.
    ///
    /// # Errors
    /// If the argument is of another kind.
    pub fn object(&self, index: usize, kind: Kind, wanted: &str) -> Found<'s> {
        let value = self.at(index);
        if value.is_a(kind) { Ok(value) } else { Err(self.wrong(wanted, index)) }
    }

    /// An argument that is text.
    ///
    /// # Errors
    /// If the argument is no text.
    pub fn text(&self, index: usize) -> Found<'s> {
        self.object(index, Kind::Text, "a string")
    }

    /// An argument that is an integer.
    ///
    /// # Errors
    /// If the argument is no integer.
    pub fn integer(&self, index: usize) -> Found<'s, i64> {
        self.at(index).as_integer().ok_or_else(|| self.wrong("an integer", index))
    }

    /// An argument that is an index, less than `end`.
    ///
    /// # Errors
    /// If the argument is no such index.
    pub fn index(&self, index: usize, end: usize) -> Found<'s, usize> {
        let found = self.at(index).as_integer().and_then(|number| usize::try_from(number).ok());
        found.filter(|&number| number < end).ok_or_else(|| {
            let wanted = format!("an index less than {end}");
            self.wrong(&wanted, index)
        })
    }

    /// A range within `len`, given by two optional arguments.
    ///
    /// # Errors
    /// If the arguments give no such range.
    pub fn range(&self, first: usize, len: usize) -> Found<'s, std::ops::Range<usize>> {
        let start = if first < self.count { self.index(first, len + 1)? } else { 0 };
        let end = if first + 1 < self.count { self.index(first + 1, len + 1)? } else { len };
        if start <= end { Ok(start..end) } else { Err(self.wrong("a start before the end", first)) }
    }

    /// A new text.
    ///
    /// # Errors
    /// If memory runs out.
    pub fn new_text(&self, text: &str) -> Found<'s> {
        Ok(Value::text(self.scope, Kind::Text, text)?)
    }

    /// A value as text.
    ///
    /// # Errors
    /// If the value nests too deep.
    pub fn printed(&self, value: &Value<'_>, is_written: bool) -> Found<'s, String> {
        let mut text = String::new();
        printer::print(value, is_written, &mut text).map_err(Fail::error)?;
        Ok(text)
    }
}
