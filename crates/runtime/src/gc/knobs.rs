//! The collector's environment variables.
//!
//! | variable | values | default |
//! | --- | --- | --- |
//! | `VELLUM_GC_SIZING` | `knee`; `original`, `modified`, `square_root` with their parameters after commas | the program's setting |
//! | `VELLUM_GC_EAGER` | a number N, a seed after a comma: on average one allocation in N collects | the program's setting |

use crate::knobs::knob;
use vellum_gc as gc;

const SIZINGS: &str = "knee, original[,mem_limit=24M][,ratio=3], \
     modified[,mem_limit=9M][,min_new_size=1M][,min_old_incr=5M] or square_root[,c=20]";

/// Applies the environment's settings to the heap.
pub(crate) fn heed() {
    knob(c"VELLUM_GC_SIZING", SIZINGS, |value| {
        gc::ask_sizing(gc::Sizing::parse(value)?);
        Some(())
    });
    knob(c"VELLUM_GC_EAGER", "a number from 1 to 4294967295[,seed=7]", |value| {
        gc::ask_strict(gc::Strict::parse(value)?);
        Some(())
    });
}
