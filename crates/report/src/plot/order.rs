//! Plots values in the order in which they were observed.
//!
//! This plot shows details that a histogram hides: changes of level, a warm-up, periodic disturbances. All
//! panels have one scale, so that series can be compared by eye.

use super::Plot;
use super::axis::Axis;
use super::picture::{Detail, Panel, Picture, Swatch};
use super::scatter::Scatter;
use super::subject::{cause_keys, clean, omissions};

pub(super) fn picture(plot: &Plot, detail: Detail) -> Picture {
    let shown = plot.shown();
    let values = shown.iter().flat_map(|one| one.plain());
    let y = Axis::around(&clean(&plot.quantity), &plot.unit, values, plot.zero);
    let mut scatter = Scatter::new(&shown, "observation", detail);
    let panels = shown.iter().map(|one| Panel {
        name: if shown.len() > 1 { clean(one.name) } else { String::new() },
        remark: one.remark("observations"),
        marks: scatter.marks(one, &y),
        y: y.clone(),
    });
    let panels = panels.collect();
    let mut notes = omissions(&shown, plot.layers, &plot.unit);
    notes.push(scatter.note("observations"));
    let title = plot.title_or(|| format!("{} in order of observation", plot.names()));
    Picture { title, x: scatter.x, panels, key: cause_keys(&shown, Swatch::Dot), notes }
}
