//! The library's initializer: it gives the loading thread a table of records. In one process of the job it
//! also measures the cost of recording.

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
