//! The environment variables, and the parser that checks them. No value of a variable ends the program.
//!
//! | variable | values | default |
//! | --- | --- | --- |
//! | `VELLUM_DISABLE` | `0` or `1` | `0` |
//! | `VELLUM_HARDEN` | `0` or `1` | `0` |
//! | `VELLUM_DECAY_MS` | `0` to 3600000 | 1000 |
//! | `VELLUM_HUGE` | `auto`, `always`, `never` | `auto` |
//! | `VELLUM_DISCARD` | `auto`, `none`, `marks`, `pager`, `user`, `flush_only` | `auto` |
//! | `VELLUM_MMAP` | `on`, `off` | `on` |
//! | `VELLUM_MASK` | capability names, comma-separated | none |
//! | `VELLUM_HEAP_PROFILE` | the file of a run of `vellum heap` (read by `start`) | none |
//! | `VELLUM_ADVICE` | the socket on which a governor sends advice (read by `start`) | none |
//!
//! `gc::knobs` reads the collector's variables. `libvellum.a` also contains this file, and applies the
//! variables of the page layer and of the hardened mode.
//!
//! An invalid value is reported in one line on standard error, and the default applies. A program with more
//! rights than its caller ([`vellum_sys::environment`]) ignores all variables.

use core::ffi::CStr;
use vellum_malloc::Line;
use vellum_pages::{Config, Discard, HugePolicy};
use vellum_sys::{Caps, caps, text};

/// The user's settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Knobs {
    /// Passes all requests through.
    pub disable: bool,
    /// Detects far more misuse, at a cost in time.
    pub harden: bool,
    /// Settings of the page layer.
    pub pages: Config,
    /// Serves the program's anonymous private mappings.
    pub mmap: bool,
}

impl Knobs {
    /// Reads the environment. Masked capabilities are dropped at once.
    pub(crate) fn read() -> Knobs {
        let mut knobs = Knobs { disable: false, harden: false, pages: Config::DEFAULT, mmap: true };
        knob(c"VELLUM_DISABLE", "0 or 1", |value| {
            knobs.disable = switch(value, b"1", b"0")?;
            Some(())
        });
        knob(c"VELLUM_HARDEN", "0 or 1", |value| {
            knobs.harden = switch(value, b"1", b"0")?;
            Some(())
        });
        knob(c"VELLUM_DECAY_MS", "a number of milliseconds up to 3600000", |value| {
            let ms = text::decimal(value).filter(|&ms| ms <= u64::from(Config::DECAY_MS_MAX))?;
            knobs.pages.decay_ms = ms as u32;
            Some(())
        });
        knob(c"VELLUM_HUGE", "auto, always or never", |value| {
            knobs.pages.huge = match value {
                b"auto" => HugePolicy::Auto,
                b"always" => HugePolicy::Always,
                b"never" => HugePolicy::Never,
                _ => return None,
            };
            Some(())
        });
        knob(c"VELLUM_DISCARD", "auto, none, marks, pager, user or flush_only", |value| {
            knobs.pages.discard = Discard::by_name(value)?;
            Some(())
        });
        knob(c"VELLUM_MMAP", "on or off", |value| {
            knobs.mmap = switch(value, b"on", b"off")?;
            Some(())
        });
        knob(c"VELLUM_MASK", "capability names separated by commas", |value| {
            caps::drop(Caps::by_names(value)?);
            Some(())
        });
        knobs
    }
}

/// The value of the environment variable `name`, if it is set, not empty, and trusted.
pub(crate) fn variable(name: &CStr) -> Option<&'static CStr> {
    vellum_sys::environment::variable(name).filter(|value| !value.is_empty())
}

/// Passes the value of `name` to `set`; if `set` refuses it, prints the values that are `wanted`.
pub(crate) fn knob(name: &CStr, wanted: &str, set: impl FnOnce(&[u8]) -> Option<()>) {
    let Some(value) = variable(name) else {
        return;
    };
    if set(value.to_bytes()).is_none() {
        let mut line = Line::new();
        line.text("vellum: ").raw(name.to_bytes()).text("=").raw(value.to_bytes());
        line.text(" is ignored: it must be ").text(wanted).text("\n").write();
    }
}

fn switch(value: &[u8], on: &[u8], off: &[u8]) -> Option<bool> {
    if value == on {
        Some(true)
    } else if value == off {
        Some(false)
    } else {
        None
    }
}
