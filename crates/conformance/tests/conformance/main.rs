//! All tests of programs with Vellum, in one executable, because linking takes most of the build time.

mod alone;
mod circles;
mod collector;
mod directions;
mod exhaustion;
mod exploits;
mod forks;
mod frames;
mod house;
mod identity;
mod interface;
mod mappings;
mod misuse;
mod misuse_cases;
mod musl;
mod neighbours;
mod paging;
mod programs;
mod signals;
mod sparse;
mod stress;
mod threads;
mod tidy;
