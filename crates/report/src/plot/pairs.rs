//! Plots the differences between the observations of a series and their partners in the first series.
//!
//! Partners (observations with the same index) were made close together in time, so disturbances common to
//! both cancel in their difference. One line marks zero (no difference), another the median of the
//! differences. Differences keep the data's unit; a note below gives the median difference as a share of the
//! first series' median.

use super::Plot;
use super::axis::Axis;
use super::palette::Ink;
use super::picture::{Detail, Key, Mark, Panel, Picture, Swatch};
use super::scatter::Scatter;
use super::subject::{Shown, Subject, Value, cause_keys, clean, omissions, scaled};
use vellum_measure::median;

pub(super) fn picture(plot: &Plot, detail: Detail) -> Picture {
    let (first, others) = plot.subjects.split_first().unwrap_or((const { &Subject::NONE }, &[]));
    let names: Vec<String> = others.iter().map(|other| format!("{} − {}", other.name, first.name)).collect();
    let shown = others.iter().zip(&names);
    let shown = shown.map(|(other, name)| Shown::of(name, differences(first, other), plot.layers));
    let shown: Vec<Shown<'_>> = shown.collect();
    let values = shown.iter().flat_map(|one| one.plain());
    let y = Axis::around(&format!("difference in {}", clean(&plot.quantity)), &plot.unit, values, true);
    let mut scatter = Scatter::new(&shown, "pair", detail);
    let level = |one: &Shown<'_>| median(&one.plain().collect::<Vec<f64>>());
    let panels = shown.iter().map(|one| {
        let mut marks = scatter.marks(one, &y);
        marks.push(Mark::Rule(Ink::Zero, 0.0));
        marks.extend(level(one).map(|level| Mark::Rule(Ink::Level, level)));
        Panel { name: clean(one.name), remark: one.remark("pairs"), marks, y: y.clone() }
    });
    let panels = panels.collect();
    let mut key =
        vec![Key { swatch: Swatch::Line(Ink::Level, None), label: "median".into(), details: Vec::new() }];
    key.extend(cause_keys(&shown, Swatch::Dot));
    let usual = median(&first.values.iter().copied().filter(|value| value.is_finite()).collect::<Vec<f64>>());
    let mut notes: Vec<String> = Vec::new();
    for (one, level) in shown.iter().filter_map(|one| Some((one, level(one)?))) {
        let share = usual.filter(|usual| *usual > 0.0).map(|usual| 100.0 * level / usual);
        let share = share.map(|share| {
            format!(" ({share:+.2} % of the median of {})", clean(&first.name)).replace('-', "−")
        });
        let share = share.unwrap_or_default();
        let sign = if level > 0.0 { "+" } else { "" };
        notes.push(format!("Median of {}: {sign}{}{share}.", clean(one.name), scaled(&plot.unit, level)));
    }
    notes.extend(omissions(&shown, plot.layers, &plot.unit));
    notes.push(scatter.note("pairs"));
    let title = plot.title_or(|| {
        let names: Vec<&str> = others.iter().map(|other| other.name.as_str()).collect();
        format!("{} against {}, by pairs", names.join(", "), first.name)
    });
    Picture { title, x: scatter.x, panels, key, notes }
}

/// The differences of `other` and its partners in `first`. A cause of either value is the difference's cause.
fn differences(first: &Subject, other: &Subject) -> Vec<Value> {
    let cause = |subject: &Subject, place: usize| subject.causes.get(place).copied().flatten();
    let pairs = first.values.iter().zip(&other.values).enumerate();
    pairs
        .map(|(place, (a, b))| Value {
            number: place + 1,
            value: b - a,
            cause: cause(other, place).or(cause(first, place)),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vellum_measure::Cause;

    #[test]
    fn a_difference_is_the_later_less_the_first_and_shows_either_cause() {
        let a = Subject::new("A", vec![5.0, 7.0, f64::NAN]).with_causes([(1, Cause::Tick)]);
        let b = Subject::new("B", vec![6.0, 3.0, 1.0]).with_causes([(0, Cause::Steal)]);
        let found = differences(&a, &b);
        assert_eq!((found[0].value, found[0].cause), (1.0, Some(Cause::Steal)));
        assert_eq!((found[1].value, found[1].cause), (-4.0, Some(Cause::Tick)));
        assert!(found[2].value.is_nan());
    }
}
