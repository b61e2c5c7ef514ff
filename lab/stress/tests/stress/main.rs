//! Vellum where it takes minutes, an emulator, or programs of others. One executable for all.

mod aarch64;
mod injected;
mod libgc;
mod libgc_programs;
mod storms;
