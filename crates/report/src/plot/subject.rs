//! Subjects (the series of a plot): selects the observations to show, and counts those left out.

use super::palette::Ink;
use super::picture::{Key, Swatch};
use vellum_measure::{Attribution, Cause, Layers, Series, Unit};

/// A series in a plot.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Its values in the plot's unit, in order of observation.
    pub values: Vec<f64>,
    /// The cause to which each observation lost time, `None` if unknown; empty if there are no causes.
    pub causes: Vec<Option<Cause>>,
}

impl Subject {
    /// An empty subject.
    pub(crate) const NONE: Self = Self { name: String::new(), values: Vec::new(), causes: Vec::new() };

    /// A series of values without causes.
    pub fn new(name: impl Into<String>, values: Vec<f64>) -> Self {
        Self { name: name.into(), values, causes: Vec::new() }
    }

    /// The per-operation values of a series (less its base), without causes; labels follow the name.
    #[must_use]
    pub fn of(series: &Series) -> Self {
        let mut name = series.name.clone();
        if !series.labels.is_empty() {
            name = format!("{name} ({})", series.labels.join(", "));
        }
        Self::new(name, series.walls())
    }

    /// Sets the causes of single observations, by their place from 0. Places beyond the end are ignored.
    #[must_use]
    pub fn with_causes(mut self, causes: impl IntoIterator<Item = (usize, Cause)>) -> Self {
        self.causes.resize(self.values.len(), None);
        for (place, cause) in causes {
            if let Some(slot) = self.causes.get_mut(place) {
                *slot = Some(cause);
            }
        }
        self
    }

    /// Gives each outlier the cause with the largest part of its loss.
    #[must_use]
    pub fn explained(self, attribution: &Attribution) -> Self {
        self.with_causes(attribution.outliers.iter().map(|outlier| (outlier.place, outlier.cause())))
    }
}

/// Larger values are no measurements, and would overflow an axis.
const SIZE_MAX: f64 = 1e300;

/// A value that is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Value {
    /// Its place in the order, from 1.
    pub(crate) number: usize,
    pub(crate) value: f64,
    pub(crate) cause: Option<Cause>,
}

/// The shown part of a subject, and the values left out.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    pub(crate) name: &'a str,
    /// The values, in order of observation.
    pub(crate) values: Vec<Value>,
    pub(crate) of: usize,
    /// Values in the layers left out.
    outliers: Vec<f64>,
    /// The number of values without a place on an axis.
    strange: usize,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(subject: &'a Subject, layers: u8) -> Self {
        let causes = subject.causes.iter().copied().chain(std::iter::repeat(None));
        let values = subject.values.iter().zip(causes).enumerate();
        let values = values.map(|(place, (value, cause))| Value { number: place + 1, value: *value, cause });
        Self::of(&subject.name, values.collect(), layers)
    }

    pub(crate) fn of(name: &'a str, all: Vec<Value>, layers: u8) -> Self {
        let of = all.len();
        let sane: Vec<Value> = all.into_iter().filter(|value| value.value.abs() <= SIZE_MAX).collect();
        let strange = of - sane.len();
        let plain: Vec<f64> = sane.iter().map(|value| value.value).collect();
        let layers = Layers::peel(&plain, layers);
        let outliers = layers.outliers().map(|place| plain[place]).collect();
        let values = layers.kept().map(|place| sane[place]).collect();
        Self { name, values, of, outliers, strange }
    }

    /// The values alone.
    pub(crate) fn plain(&self) -> impl Iterator<Item = f64> + '_ {
        self.values.iter().map(|value| value.value)
    }

    /// The values alone, from the lowest to the highest.
    pub(crate) fn sorted(&self) -> Vec<Value> {
        let mut values = self.values.clone();
        values.sort_by(|a, b| a.value.total_cmp(&b.value));
        values
    }

    /// A remark such as "986 of 1,000 observations".
    pub(crate) fn remark(&self, what: &str) -> String {
        let of = Unit::Count.scaled(self.of as f64);
        if self.values.len() == self.of {
            format!("{of} {what}")
        } else {
            format!("{} of {of} {what}", Unit::Count.scaled(self.values.len() as f64))
        }
    }
}

/// Sentences on what the picture leaves out.
pub(crate) fn omissions(shown: &[Shown<'_>], layers: u8, unit: &Unit) -> Vec<String> {
    let mut notes = Vec::new();
    let several = shown.len() > 1;
    let whose = |one: &Shown<'_>| if several { format!("{} ", clean(one.name)) } else { String::new() };
    if layers > 0 {
        let each = shown.iter().map(|one| {
            let count = one.outliers.len();
            let (low, high) = one
                .outliers
                .iter()
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
            let reach = match count {
                0 => String::new(),
                1 => format!(" ({})", scaled(unit, low)),
                _ => format!(" ({} to {})", scaled(unit, low), scaled(unit, high)),
            };
            let [count, all] = [count, one.of].map(|number| Unit::Count.scaled(number as f64));
            format!("{}{count} of {all}{reach}", whose(one))
        });
        let each: Vec<String> = each.collect();
        let s = if layers == 1 { "" } else { "s" };
        notes
            .push(format!("{layers} layer{s} of outliers (beyond mean ± 2σ) left out: {}.", each.join("; ")));
    }
    for one in shown.iter().filter(|one| one.strange > 0) {
        let strange = Unit::Count.scaled(one.strange as f64);
        notes.push(format!("{}{strange} values are no numbers and left out.", whose(one)));
    }
    notes
}

/// Keys for the causes that occur, with their numbers.
pub(crate) fn cause_keys(shown: &[Shown<'_>], swatch: fn(Ink) -> Swatch) -> Vec<Key> {
    let count =
        |cause| shown.iter().flat_map(|one| &one.values).filter(|value| value.cause == Some(cause)).count();
    let found = Cause::ALL.into_iter().map(|cause| (cause, count(cause))).filter(|(_, count)| *count > 0);
    found
        .map(|(cause, count)| Key {
            swatch: swatch(Ink::Cause(cause)),
            label: format!("{} {}", cause.name(), Unit::Count.scaled(count as f64)),
            details: Vec::new(),
        })
        .collect()
}

/// A value for people, with a true minus.
pub(crate) fn scaled(unit: &Unit, value: f64) -> String {
    unit.scaled(value).replace('-', "−")
}

/// A name for a picture: control characters and characters that XML forbids become question marks.
pub(crate) fn clean(text: &str) -> String {
    let strange = |c: char| {
        c.is_control()
            || matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if strange(c) { '?' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omissions_are_listed() {
        let mut values = vec![6.0; 40];
        values.extend([9000.0, f64::NAN, f64::INFINITY]);
        let subject = Subject::new("BASE", values);
        let shown = [Shown::new(&subject, 1)];
        assert_eq!((shown[0].values.len(), shown[0].of), (40, 43));
        assert_eq!(shown[0].remark("observations"), "40 of 43 observations");
        assert_eq!(
            omissions(&shown, 1, &Unit::Microseconds),
            [
                "1 layer of outliers (beyond mean ± 2σ) left out: 1 of 43 (9.00 ms).",
                "2 values are no numbers and left out."
            ]
        );
    }

    #[test]
    fn numbers_include_values_left_out() {
        let subject =
            Subject::new("x", vec![1.0, f64::NAN, 3.0]).with_causes([(2, Cause::Tick), (9, Cause::Steal)]);
        let shown = Shown::new(&subject, 0);
        assert_eq!(shown.values[1].number, 3);
        assert_eq!(shown.values[1].cause, Some(Cause::Tick));
        assert_eq!(cause_keys(&[shown], Swatch::Dot).len(), 1);
    }
}
