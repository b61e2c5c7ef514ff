//! Plots of observations for people, as SVG or in a terminal.
//!
//! Plots show details that summary figures hide: a few observations a thousand times the rest, two levels, a
//! disturbance every four milliseconds. Every observation is therefore in the picture. The [kinds](Kind):
//!
//! - **order**: values in the order in which they were observed;
//! - **histogram**: the number of values in each bin;
//! - **ecdf**: the share of values at or below each value, with all series on the same axes;
//! - **pairs**: how much each observation of a series differs from its partner in the first series.
//!
//! A few outliers would stretch the axis until all other observations lie together. Each kind can therefore
//! leave out [layers](Plot::layers) of outliers, and then prints the outliers' number and how far they
//! reach. An axis spans the data, or begins at [zero](Plot::zero). Observations that lost time to a known
//! cause have that [cause's](vellum_measure::Cause) colour and shape, which a key explains.
//!
//! ```text
//!            Plot ── series ───▶ Picture (axes, marks, key, notes; in the data's own units)
//!   order histogram ecdf pairs chart├──▶ vector ──▶ pen: SVG
//!   thin axis palette               └──▶ terminal (braille, eighth blocks, letters)
//! ```
//!
//! The diagram names files of this folder. A [`Chart`] draws computed figures: lines and bars over a scale.
//!
//! A hundred thousand observations make a small file, and a single outlier among them is still a dot: see
//! `thin`. The picture states how many observations it shows and how. The same plot always gives the same
//! bytes.
//!
//! Source: `plot` of Bates 1999, "Reliable Benchmarking with Limbo on Inferno" (`-o` for a layer of
//! outliers, `-p 1h` for a histogram, `-z` for an axis from zero). We add the ECDF, pairs, units, causes,
//! and a note on the observations left out.
//!
//! ```
//! use vellum_measure::Unit;
//! use vellum_report::plot::{Kind, Plot, Subject};
//!
//! let times = Subject::new("BASE", vec![6.0, 7.0, 6.0, 8.0, 6.0, 9000.0]);
//! let plot = Plot::new(Kind::Histogram, "time", Unit::Microseconds, vec![times])?.layers(1).zero(true);
//! assert!(plot.svg().contains("1 of 6"));
//! print!("{}", plot.terminal(80, 24, false));
//! # Ok::<(), vellum_report::plot::PlotError>(())
//! ```

mod axis;
mod canvas;
mod chart;
mod ecdf;
mod error;
mod histogram;
mod order;
mod pairs;
pub mod palette;
mod pen;
mod picture;
mod scatter;
mod subject;
mod terminal;
pub(crate) mod text;
mod thin;
mod vector;

pub use chart::{Chart, Quantity, Scaling, Shape};
pub use error::PlotError;
pub use subject::Subject;

use picture::{Detail, Picture};
use subject::Shown;
use vellum_measure::{Series, Unit};

/// The kinds of plots. These comments are the help texts of the option for a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// Values in the order in which they were observed.
    Order,
    /// The number of values in each bin.
    Histogram,
    /// The share of the values at or below each value.
    Ecdf,
    /// Each value less its partner in the first series.
    Pairs,
}

/// The most series: more would be too low to see, or too many to distinguish.
pub const SERIES_MAX: usize = 7;

/// A plot of one or several series, ready to be drawn.
#[derive(Debug, Clone)]
pub struct Plot {
    kind: Kind,
    title: Option<String>,
    quantity: String,
    unit: Unit,
    subjects: Vec<Subject>,
    layers: u8,
    zero: bool,
    bin: Option<f64>,
}

impl Plot {
    /// A plot of `subjects`, whose values are `quantity` in `unit`.
    ///
    /// # Errors
    /// If there are no subjects or too many, if causes do not go with the values, or if a value has no
    /// partner for [`Kind::Pairs`].
    pub fn new(
        kind: Kind,
        quantity: impl Into<String>,
        unit: Unit,
        subjects: Vec<Subject>,
    ) -> Result<Self, PlotError> {
        let first = subjects.first().ok_or(PlotError::NoSeries)?;
        if subjects.len() > SERIES_MAX {
            return Err(PlotError::TooMany(subjects.len()));
        }
        for Subject { name, values, causes } in &subjects {
            let (values, causes) = (values.len(), causes.len());
            if causes != 0 && causes != values {
                return Err(PlotError::Causes { name: name.clone(), values, causes });
            }
        }
        if kind == Kind::Pairs {
            if subjects.len() < 2 {
                return Err(PlotError::NoPartner(first.name.clone()));
            }
            let first_count = first.values.len();
            if let Some(other) = subjects.iter().find(|subject| subject.values.len() != first_count) {
                let (name, count) = (other.name.clone(), other.values.len());
                return Err(PlotError::Unpaired { name, count, first: first.name.clone(), first_count });
            }
        }
        let quantity = quantity.into();
        Ok(Self { kind, title: None, quantity, unit, subjects, layers: 0, zero: false, bin: None })
    }

    /// A plot of the per-operation times (or other values) of `series`, in the first one's unit.
    ///
    /// # Errors
    /// Errors of [`Plot::new`], or if a series has another quantity than the first, or a unit that cannot be
    /// converted.
    pub fn of(kind: Kind, series: &[Series]) -> Result<Self, PlotError> {
        let first = series.first().ok_or(PlotError::NoSeries)?;
        let mut subjects = Vec::with_capacity(series.len());
        for one in series {
            let factor = match (one.unit.nanoseconds(), first.unit.nanoseconds()) {
                _ if one.quantity != first.quantity => None,
                (Some(of_one), Some(of_first)) => Some(of_one / of_first),
                _ => (one.unit == first.unit).then_some(1.0),
            };
            let Some(factor) = factor else {
                let what = |series: &Series| format!("{} in {}", series.quantity, series.unit);
                let [what, first_what] = [what(one), what(first)];
                let [name, first] = [one, first].map(|series| series.name.clone());
                return Err(PlotError::Mixed { name, what, first, first_what });
            };
            let mut subject = Subject::of(one);
            subject.values.iter_mut().for_each(|value| *value *= factor);
            subjects.push(subject);
        }
        Self::new(kind, first.quantity.clone(), first.unit.clone(), subjects)
    }

    /// Sets the title; without one, it is the names of the series.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Leaves out this many layers of outliers (outside mean ± 2σ, repeatedly), of each series or the
    /// differences.
    #[must_use]
    pub fn layers(mut self, layers: u8) -> Self {
        self.layers = layers;
        self
    }

    /// Lets the axis of values begin at zero. The axis of differences always includes zero.
    #[must_use]
    pub fn zero(mut self, zero: bool) -> Self {
        self.zero = zero;
        self
    }

    /// Sets the width of a histogram's bins, in the series' unit. Bins are wider if there would be too many
    /// to show. A width that is not above zero is ignored.
    #[must_use]
    pub fn bin(mut self, width: f64) -> Self {
        self.bin = (width > 0.0 && width.is_finite()).then_some(width);
        self
    }

    /// The series; use this to set their causes.
    pub fn subjects_mut(&mut self) -> impl Iterator<Item = &mut Subject> {
        self.subjects.iter_mut()
    }

    /// The picture as an SVG document, 900 units wide.
    #[must_use]
    pub fn svg(&self) -> String {
        vector::svg(&self.picture(vector::DETAIL))
    }

    /// The picture as `height` lines of at most `width` columns. With `colour`, escape sequences set the
    /// colours.
    ///
    /// Smaller sizes than [`COLUMNS_MIN`](Plot::COLUMNS_MIN) by [`LINES_MIN`](Plot::LINES_MIN) are raised to
    /// these. Many panels or a long key can need more lines than a terminal has; they are not cut.
    #[must_use]
    pub fn terminal(&self, width: usize, height: usize, colour: bool) -> String {
        let (width, height) = (width.max(Self::COLUMNS_MIN), height.max(Self::LINES_MIN));
        let picture = self.picture(Detail {
            columns: width,
            rows: height,
            bins: terminal::data_columns(width),
            shapes_max: None,
        });
        terminal::draw(&picture, (width, height), colour)
    }

    /// The narrowest terminal for a readable plot.
    pub const COLUMNS_MIN: usize = 40;
    /// The lowest terminal for a readable plot.
    pub const LINES_MIN: usize = 12;

    fn picture(&self, detail: Detail) -> Picture {
        match self.kind {
            Kind::Order => order::picture(self, detail),
            Kind::Histogram => histogram::picture(self, detail),
            Kind::Ecdf => ecdf::picture(self, detail),
            Kind::Pairs => pairs::picture(self, detail),
        }
    }

    /// The subjects without NaN and other values that have no place on an axis, and without the layers to
    /// leave out.
    fn shown(&self) -> Vec<Shown<'_>> {
        self.subjects.iter().map(|subject| Shown::new(subject, self.layers)).collect()
    }

    fn title_or(&self, otherwise: impl FnOnce() -> String) -> String {
        subject::clean(&self.title.clone().unwrap_or_else(otherwise))
    }

    /// The names of all series, "BASE, xstamp", or of the first if there are many.
    fn names(&self) -> String {
        let names: Vec<&str> = self.subjects.iter().map(|subject| subject.name.as_str()).collect();
        match names[..] {
            [first, _, _, _, ..] => format!("{first} and {} more", names.len() - 1),
            _ => names.join(", "),
        }
    }
}
