//! Reads the logs in which processes describe their mapped files and stacks: see [`vellum_wire::log`].
//!
//! Invariant: every length is checked against the log, as a program may have written anywhere. Reading ends
//! at the first entry that is incomplete or invalid.

use crate::script::ScriptLine;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use vellum_wire::log::{EntryKind, LINE_BIT, LINE_WORDS, MODULE_WORDS, STACK_FRAMES_MAX};

/// Bytes of a word.
pub(crate) const WORD: usize = 8;
/// The longest text: the path of a module.
const TEXT_MAX: usize = 4096;
/// The most words of a module's entry.
pub(crate) const MODULE_WORDS_MAX: usize = MODULE_WORDS + TEXT_MAX / WORD;

/// A module that a process had mapped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedModule {
    /// The number of earlier unmappings of modules.
    pub epoch: u32,
    /// The first address.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// The difference between loaded addresses and those in the file.
    pub bias: u64,
    /// The file.
    pub path: PathBuf,
}

/// An entry of a log.
#[derive(Debug)]
pub(crate) enum Entry<'a> {
    Module(MappedModule),
    /// The words before the frames, and the frames.
    Stack(&'a [u64], &'a [u64]),
    /// The key, and the line.
    Line(u64, Arc<ScriptLine>),
}

/// The entries in the words of a log. A stack has `stack_words` words before its frames.
pub(crate) fn entries(mut rest: &[u64], stack_words: usize) -> impl Iterator<Item = Entry<'_>> {
    std::iter::from_fn(move || {
        let head = *rest.first()?;
        let bytes = (head >> 32) as usize;
        let (words, next) = rest.split_at_checked(1 + bytes.div_ceil(WORD))?;
        rest = next;
        let text = |from: usize, after: usize, count: usize| {
            let bytes = words[from..].iter().flat_map(|word| word.to_ne_bytes());
            bytes.skip(after).take(count.min(TEXT_MAX)).collect::<Vec<u8>>()
        };
        match head as u32 {
            kind if kind == EntryKind::Module as u32 => {
                let &[_, epoch, start, end, bias] = words.first_chunk::<MODULE_WORDS>()?;
                let path = text(MODULE_WORDS, 0, bytes.checked_sub((MODULE_WORDS - 1) * WORD)?);
                let path = PathBuf::from(OsStr::from_bytes(&path));
                Some(Entry::Module(MappedModule { epoch: epoch as u32, start, end, bias, path }))
            }
            kind if kind == EntryKind::Stack as u32 => {
                let (own, frames) = words.split_at_checked(stack_words)?;
                Some(Entry::Stack(own, &frames[..frames.len().min(STACK_FRAMES_MAX)]))
            }
            kind if kind == EntryKind::Line as u32 => {
                let &[_, key, line, name] = words.first_chunk::<LINE_WORDS>()?;
                let all = bytes.checked_sub((LINE_WORDS - 1) * WORD)?;
                let name = usize::try_from(name).ok().filter(|&name| name <= all && key & LINE_BIT != 0)?;
                let text = |after, count| String::from_utf8_lossy(&text(LINE_WORDS, after, count)).into();
                let (function, file) = (text(0, name), text(name, all - name));
                Some(Entry::Line(
                    key,
                    Arc::new(ScriptLine { file, line: u32::try_from(line).ok()?, function }),
                ))
            }
            _ => None,
        }
    })
}

/// The name in a process's part.
pub(crate) fn name(words: &[AtomicU64; 2]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
    String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}
