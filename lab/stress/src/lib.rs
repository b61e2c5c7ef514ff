//! Tests of the product that take minutes or an emulator: storms, refused system calls, aarch64,
//! programs written for libgc. All are in `tests/conformance`; `vellum-conformance` has what they
//! share with the product's.
