//! Vellum under real programs. One executable for all, as linking is what takes longest.

mod collector;
mod directions;
mod exhaustion;
mod forks;
mod identity;
mod interface;
mod limits;
mod mappings;
mod misuse;
mod neighbours;
mod paging;
mod programs;
mod signals;
mod stress;
mod threads;
