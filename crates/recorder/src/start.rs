//! The library's initializer: the loading thread gets a table, and one process of the job measures the cost
//! of recording.

use crate::spent::spending;
use crate::{attach, modules, own, python, thread};

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = start;

extern "C" fn start() {
    let thread = thread::this();
    modules::prepare();
    python::look();
    if attach::attach(thread) {
        thread.open();
        spending(|| own::measure_once(thread));
    }
}
