//! The symbol table: one object for each name, so that names are compared by address.
//!
//! The table holds symbols weakly: a symbol without other references is collected, and the next sweep of
//! the table removes its name.

use crate::memory::{Kind, OutOfMemory, Scope, Value, Weak, in_scope};
use std::collections::HashMap;

/// Number of names at which the table is first swept.
const SWEPT_MIN: usize = 1024;

/// The symbols of a machine.
#[derive(Debug)]
pub struct Symbols {
    known: HashMap<Box<str>, Weak>,
    swept_at: usize,
}

impl Default for Symbols {
    fn default() -> Self {
        Symbols { known: HashMap::new(), swept_at: SWEPT_MIN }
    }
}

impl Symbols {
    /// The symbol with this name.
    pub fn intern<'s>(&mut self, scope: &Scope<'s>, name: &str) -> Result<Value<'s>, OutOfMemory> {
        if let Some(symbol) = self.known.get(name).and_then(|weak| weak.get(scope)) {
            return Ok(symbol);
        }
        if self.known.len() >= self.swept_at {
            in_scope(|scope| self.known.retain(|_, weak| weak.get(scope).is_some()));
            self.swept_at = (self.known.len() * 2).max(SWEPT_MIN);
        }
        let symbol = Value::text(scope, Kind::Symbol, name)?;
        self.known.insert(name.into(), Weak::new(&symbol)?);
        Ok(symbol)
    }

    /// The number of names in the table.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }
}
