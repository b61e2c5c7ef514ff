//! The call of a built-in procedure: its arguments and its result.

use crate::fail::Fail;
use crate::machine::Machine;
use crate::memory::{Kind, Scope, Value};
use crate::printer;

/// A call of a procedure: its arguments lie on the machine's stack.
#[derive(Debug)]
pub struct Call<'a, 's> {
    /// The machine.
    pub machine: &'a mut Machine,
    /// In which the result is good.
    pub scope: &'a Scope<'s>,
    /// Where the first argument lies.
    pub base: usize,
    /// How many there are.
    pub count: usize,
    /// The procedure's name, for errors; those that only the prelude calls begin with `%`.
    pub name: &'static str,
}

/// The value of a call.
pub type Found<'s, T = Value<'s>> = Result<T, Fail<'s>>;
/// A procedure.
pub type Primitive = for<'a, 'b, 's> fn(&'b mut Call<'a, 's>) -> Found<'s>;
/// A procedure's name, the least and the most arguments that it takes, and itself.
pub type Row = (&'static str, usize, usize, Primitive);
/// Procedures.
pub type Table = &'static [Row];
/// For a procedure that takes any number of arguments, or at least some.
pub const ANY: usize = usize::MAX;

/// The error of a procedure that was given something else.
#[cold]
pub fn wrong<'s>(scope: &Scope<'s>, name: &str, wanted: &str, given: &Value<'_>) -> Fail<'s> {
    match Value::pair(scope, given, &Value::nil()) {
        Ok(about) => Fail::Error(format!("{name}: {wanted} was expected, not"), Some(about)),
        Err(memory) => Fail::Memory(memory),
    }
}

impl<'s> Call<'_, 's> {
    /// An argument; unspecified if there is none.
    #[inline]
    pub fn at(&self, index: usize) -> Value<'s> {
        if index >= self.count {
            return Value::unspecified();
        }
        self.machine.stack.get(self.base + index, self.scope)
    }

    /// An argument that need not be there.
    pub fn maybe(&self, index: usize) -> Option<Value<'s>> {
        (index < self.count).then(|| self.at(index))
    }

    /// Checks how many arguments there are.
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

    /// The error that an argument is not what was wanted.
    #[cold]
    pub fn wrong(&self, wanted: &str, index: usize) -> Fail<'s> {
        wrong(self.scope, self.name.trim_start_matches('%'), wanted, &self.at(index))
    }

    /// Whether the argument is of a kind, as a value.
    pub fn is(&self, kind: Kind) -> Found<'s> {
        Ok(Value::boolean(self.at(0).is_a(kind)))
    }

    /// An argument of a kind.
    ///
    /// # Errors
    /// If it is of another.
    pub fn object(&self, index: usize, kind: Kind, wanted: &str) -> Found<'s> {
        let value = self.at(index);
        if value.is_a(kind) { Ok(value) } else { Err(self.wrong(wanted, index)) }
    }

    /// An argument that is text.
    ///
    /// # Errors
    /// If it is not.
    pub fn text(&self, index: usize) -> Found<'s> {
        self.object(index, Kind::Text, "a string")
    }

    /// An argument that is an integer.
    ///
    /// # Errors
    /// If it is not.
    pub fn integer(&self, index: usize) -> Found<'s, i64> {
        self.at(index).as_integer().ok_or_else(|| self.wrong("an integer", index))
    }

    /// An argument that is an index, less than `end`.
    ///
    /// # Errors
    /// If it is not.
    pub fn index(&self, index: usize, end: usize) -> Found<'s, usize> {
        let found = self.at(index).as_integer().and_then(|number| usize::try_from(number).ok());
        found.filter(|&number| number < end).ok_or_else(|| {
            let wanted = format!("an index less than {end}");
            self.wrong(&wanted, index)
        })
    }

    /// Two arguments that say a range within `len`; they need not be there.
    ///
    /// # Errors
    /// If they do not.
    pub fn range(&self, first: usize, len: usize) -> Found<'s, std::ops::Range<usize>> {
        let start = if first < self.count { self.index(first, len + 1)? } else { 0 };
        let end = if first + 1 < self.count { self.index(first + 1, len + 1)? } else { len };
        if start <= end { Ok(start..end) } else { Err(self.wrong("a start before the end", first)) }
    }

    /// A new text.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn new_text(&self, text: &str) -> Found<'s> {
        Ok(Value::text(self.scope, Kind::Text, text)?)
    }

    /// A value as text.
    ///
    /// # Errors
    /// If it nests too deep.
    pub fn printed(&self, value: &Value<'_>, is_written: bool) -> Found<'s, String> {
        let mut text = String::new();
        printer::print(value, is_written, &mut text).map_err(Fail::error)?;
        Ok(text)
    }
}
