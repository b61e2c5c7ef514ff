//! Colours for text, on terminals only.
//!
//! Colour helps the eye find labels; it never carries meaning alone. Colour is off if the output is not a
//! terminal, if `NO_COLOR` is not empty (no-color.org), or if the terminal's type is unset or `dumb`.

use std::io::IsTerminal;

/// The style of words: with or without colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    colour: bool,
}

impl Style {
    /// No colour, for files.
    pub const fn plain() -> Style {
        Style { colour: false }
    }

    /// The style for standard error.
    pub fn of_stderr() -> Style {
        Style::of(&std::io::stderr())
    }

    /// The style for standard output.
    pub fn of_stdout() -> Style {
        Style::of(&std::io::stdout())
    }

    fn of(place: &impl IsTerminal) -> Style {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Style { colour: place.is_terminal() && !refused && !dumb }
    }

    /// True if there is colour.
    pub fn is_coloured(self) -> bool {
        self.colour
    }

    /// A heading.
    pub fn bold(self, text: &str) -> String {
        self.wrap("1", text)
    }

    /// A label.
    pub fn label(self, text: &str) -> String {
        self.wrap("36", text)
    }

    /// Highlighted text.
    pub fn notice(self, text: &str) -> String {
        self.wrap("33", text)
    }

    fn wrap(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
