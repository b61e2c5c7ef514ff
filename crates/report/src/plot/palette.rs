//! The colours and marks of every picture.
//!
//! The colours are those of Okabe and Ito ("Color universal design", 2008), which people with the common
//! forms of colour blindness can distinguish. Departures for white paper: yellow is darkened, and brown
//! replaces it among the series. There are more causes of delay than distinguishable colours, so each cause
//! also has a shape, and in a terminal a letter. A picture without colour has the same information.

use std::fmt;
use vellum_measure::Cause;

/// A colour: red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rgb(pub u8, pub u8, pub u8);

/// The form of SVG and HTML: `#0072B2`.
impl fmt::Display for Rgb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(red, green, blue) = self;
        write!(f, "#{red:02X}{green:02X}{blue:02X}")
    }
}

pub(crate) const WHITE: Rgb = Rgb(255, 255, 255);

/// Text and axes.
pub const TEXT: Rgb = Rgb(40, 40, 40);
/// Text of less importance.
pub const FAINT: Rgb = Rgb(105, 105, 105);
/// Lines behind the data.
pub const GRID: Rgb = Rgb(225, 225, 225);
/// Published figures, beside measured ones.
pub const PUBLISHED: Rgb = Rgb(140, 140, 140);
/// Colours of series, in order; the eighth series has the first one's colour.
pub const SERIES: [Rgb; 7] = [
    Rgb(0, 114, 178),
    Rgb(213, 94, 0),
    Rgb(0, 158, 115),
    Rgb(204, 121, 167),
    Rgb(86, 180, 233),
    Rgb(230, 159, 0),
    Rgb(90, 60, 20),
];
/// The colour of a crowd of observations, from its lowest to its highest.
const TINT: Rgb = Rgb(158, 200, 226);

/// The meaning of a mark, which determines its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ink {
    /// Observations of a series, by the series' number.
    Series(usize),
    /// A crowd of observations from end to end, behind its middle half.
    Tint,
    /// Observations that lost time to this cause.
    Cause(Cause),
    /// A level, such as a median.
    Level,
    /// The zero line of differences.
    Zero,
    /// Published figures.
    Published,
}

/// The shape of one observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Disc,
    Square,
    Diamond,
    Up,
    Down,
    Cross,
    Plus,
    Ring,
    Stroke,
}

/// The number of classes of observations: ordinary ones, and one class for each cause.
pub(crate) const CLASSES: usize = Cause::ALL.len() + 1;

/// The class of an observation: 0 for an ordinary one, else its cause's number from 1.
pub(crate) fn class(cause: Option<Cause>) -> usize {
    Cause::ALL.iter().position(|one| Some(*one) == cause).map_or(0, |place| place + 1)
}

impl Ink {
    pub(crate) fn of_class(class: usize) -> Self {
        let cause = class.checked_sub(1).and_then(|place| Cause::ALL.get(place));
        cause.map_or(Self::Series(0), |cause| Self::Cause(*cause))
    }

    pub(crate) fn colour(self) -> Rgb {
        match self {
            Self::Series(place) => SERIES[place % SERIES.len()],
            Self::Tint => TINT,
            Self::Cause(cause) => colour(cause),
            Self::Level => TEXT,
            Self::Zero => FAINT,
            Self::Published => PUBLISHED,
        }
    }

    pub(crate) fn shape(self) -> Shape {
        match self {
            Self::Cause(cause) => look(cause).1,
            Self::Published => Shape::Up,
            _ => Shape::Disc,
        }
    }

    /// The number of the nearest colour among a terminal's 256 (its 6×6×6 cube, or its greys).
    pub(crate) fn terminal(self) -> u8 {
        // Colours that are nearly black on paper must be light on a dark background.
        let Rgb(r, g, b) = match self.colour() {
            Rgb(r, g, b) if r.max(g).max(b) < 60 => Rgb(200, 200, 200),
            colour => colour,
        };
        let step = |level: u8| (u16::from(level) * 5 + 127) / 255;
        if r == g && g == b {
            return (232 + (u16::from(r) * 23 + 127) / 255) as u8;
        }
        (16 + 36 * step(r) + 6 * step(g) + step(b)) as u8
    }
}

/// The colour of a cause, its shape, and its letter in a terminal.
fn look(cause: Cause) -> (Rgb, Shape, char) {
    match cause {
        Cause::MinorFault => (Rgb(230, 159, 0), Shape::Square, 'f'),
        Cause::MajorFault => (Rgb(213, 94, 0), Shape::Up, 'F'),
        Cause::Preemption => (Rgb(204, 121, 167), Shape::Diamond, 'p'),
        Cause::Wait => (Rgb(86, 180, 233), Shape::Down, 'w'),
        Cause::Steal => (Rgb(0, 0, 0), Shape::Cross, 's'),
        Cause::Collection => (Rgb(0, 158, 115), Shape::Plus, 'c'),
        Cause::Allocator => (Rgb(90, 60, 20), Shape::Ring, 'a'),
        Cause::Tick => (Rgb(176, 160, 0), Shape::Stroke, 't'),
        Cause::Unexplained => (Rgb(130, 130, 130), Shape::Disc, '?'),
    }
}

/// The colour of a cause.
#[must_use]
pub fn colour(cause: Cause) -> Rgb {
    look(cause).0
}

/// The letter of a cause in a terminal.
#[must_use]
pub fn letter(cause: Cause) -> char {
    look(cause).2
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn causes_differ_in_colour_and_letter_and_from_the_first_series() {
        let colours: HashSet<_> = Cause::ALL.map(colour).into();
        assert_eq!(colours.len(), Cause::ALL.len());
        assert!(!colours.contains(&SERIES[0]));
        let letters: HashSet<char> = Cause::ALL.map(letter).into();
        assert_eq!(letters.len(), Cause::ALL.len());
    }

    #[test]
    fn a_terminal_shows_the_nearest_colour() {
        assert_eq!(Ink::Series(0).terminal(), 16 + 2 * 6 + 3, "blue");
        assert_eq!(Ink::Cause(Cause::Steal).terminal(), 250, "black shows as light grey");
    }
}
