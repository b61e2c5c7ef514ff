//! Tests of the collector by its interface. A process has one heap, so each test runs in a separate process.
//! A test that runs on several heaps is a table with a row for each.

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
