//! The collector from outside. A heap is its process's: each test has a process of its own, and the same test
//! on several heaps is a row for each.

#[macro_use]
mod heap;
mod nodes;
mod program;
mod words;

mod appel;
mod called_back;
mod confined;
mod dead;
mod discards;
mod ephemerons;
mod footprint;
mod freed;
mod hidden;
mod idle_thread;
mod leftover;
mod model;
mod parallel;
mod partial;
mod precise;
mod random_points;
mod safepoints;
mod threads;
mod tight;
