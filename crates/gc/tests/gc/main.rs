//! The collector from outside. There is one heap a process: each test runs in a separate process, and the
//! same test on several heaps is a row for each.

#[macro_use]
mod heap;
mod nodes;
mod program;
mod words;

mod checks;
mod confined;
mod dead;
mod discards;
mod footprint;
mod freed;
mod generations;
mod hidden;
mod idle_thread;
mod model;
mod parallel;
mod precise;
mod threads;
mod tight;
