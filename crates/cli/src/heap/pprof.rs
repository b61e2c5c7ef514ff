//! The heap profile for `go tool pprof` and compatible tools: a `perftools.profiles.Profile` of
//! `profile.proto`, compressed by gzip.
//!
//! This file implements only the needed part of the protocol buffers encoding
//! (<https://protobuf.dev/programming-guides/encoding/>): integers of variable length, and fields that begin
//! with their length. Samples have six values; the first four are those of Go's heap profiles.

use super::observed::{Level, Observed, blocks};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// The values of a sample, and their units.
const VALUES: [(&str, &str); 6] = [
    ("alloc_objects", "count"),
    ("alloc_space", "bytes"),
    ("inuse_objects", "count"),
    ("inuse_space", "bytes"),
    ("peak_objects", "count"),
    ("peak_space", "bytes"),
];
/// The value that is shown first.
const FIRST_SHOWN: &str = "peak_space";

#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number field; zeros are omitted, as they are the default.
    fn number(mut self, field: u64, value: u64) -> Message {
        if value != 0 {
            self.varint(field << 3);
            self.varint(value);
        }
        self
    }

    fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn message(self, field: u64, message: Message) -> Message {
        self.bytes(field, &message.0)
    }

    fn numbers(self, field: u64, values: impl IntoIterator<Item = u64>) -> Message {
        let mut packed = Message::default();
        values.into_iter().for_each(|value| packed.varint(value));
        self.bytes(field, &packed.0)
    }
}

/// The numbered objects of the profile: texts from 0, all others from 1.
#[derive(Default)]
struct Tables {
    texts: HashMap<String, u64>,
    in_order: Vec<String>,
    modules: HashMap<Arc<Path>, u64>,
    functions: HashMap<(u64, u64), u64>,
    locations: HashMap<(u64, u64, u64, u64), u64>,
    /// Mappings, functions and locations, in the order of their first use.
    entries: Message,
}

impl Tables {
    fn text(&mut self, text: &str) -> u64 {
        if let Some(&known) = self.texts.get(text) {
            return known;
        }
        let number = self.in_order.len() as u64;
        self.texts.insert(text.to_owned(), number);
        self.in_order.push(text.to_owned());
        number
    }

    fn value_type(&mut self, name: &str, unit: &str) -> Message {
        let (name, unit) = (self.text(name), self.text(unit));
        Message::default().number(1, name).number(2, unit)
    }

    fn add(&mut self, field: u64, message: Message) {
        self.entries = std::mem::take(&mut self.entries).message(field, message);
    }

    fn module(&mut self, module: &Arc<Path>) -> u64 {
        if let Some(&known) = self.modules.get(module) {
            return known;
        }
        let number = self.modules.len() as u64 + 1;
        self.modules.insert(module.clone(), number);
        let path = self.text(&module.to_string_lossy());
        // Flags: functions, file names and lines are present, so tools need not look them up.
        let message = Message::default().number(1, number).number(5, path);
        self.add(3, message.number(7, 1).number(8, 1).number(9, 1));
        number
    }

    fn function(&mut self, name: &str, file: &str) -> u64 {
        let key = (self.text(name), self.text(file));
        if let Some(&known) = self.functions.get(&key) {
            return known;
        }
        let number = self.functions.len() as u64 + 1;
        self.functions.insert(key, number);
        let message = Message::default().number(1, number).number(2, key.0).number(3, key.0);
        self.add(5, message.number(4, key.1));
        number
    }

    fn location(&mut self, level: &Level) -> u64 {
        let module = level.module.as_ref().map_or(0, |module| self.module(module));
        let lines = level.functions.iter().map(|function| {
            let (name, file) = (function.name.as_deref().unwrap_or("?"), function.file.as_deref());
            (self.function(name, file.unwrap_or_default()), u64::from(function.line.unwrap_or(0)))
        });
        let lines: Vec<(u64, u64)> = lines.collect();
        // A line of an interpreted program has no address: its function and line number identify it.
        let (name, line) = lines.first().filter(|_| level.module.is_none()).copied().unwrap_or_default();
        let key = (module, level.address, name, line);
        if let Some(&known) = self.locations.get(&key) {
            return known;
        }
        let number = self.locations.len() as u64 + 1;
        self.locations.insert(key, number);
        let mut message = Message::default().number(1, number).number(2, module).number(3, level.address);
        for (function, line) in lines {
            message = message.message(4, Message::default().number(1, function).number(2, line));
        }
        self.add(4, message);
        number
    }
}

fn encode(observed: &Observed) -> Vec<u8> {
    let mut tables = Tables::default();
    tables.text("");
    let mut profile = Message::default();
    for (name, unit) in VALUES {
        profile = profile.message(1, tables.value_type(name, unit));
    }
    for stack in &observed.stacks {
        let locations: Vec<u64> = stack.levels.iter().map(|level| tables.location(level)).collect();
        let held = &stack.holding;
        let values = [held.ever, held.now, held.peak].into_iter().flat_map(|of| [blocks(of), of.bytes]);
        profile = profile.message(2, Message::default().numbers(1, locations).numbers(2, values));
    }
    let period = tables.value_type("space", "bytes");
    let shown = tables.text(FIRST_SHOWN);
    let wall = u64::try_from(observed.wall().as_nanos()).unwrap_or(u64::MAX);
    profile.0.append(&mut tables.entries.0);
    for text in &tables.in_order {
        profile = profile.bytes(6, text.as_bytes());
    }
    profile.number(10, wall).message(11, period).number(12, observed.interval).number(14, shown).0
}

/// The encoded, compressed file.
///
/// # Errors
/// None in practice: writing to memory does not fail.
pub(crate) fn render(observed: &Observed) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&encode(observed))?;
    encoder.finish()
}
