//! Tests of the product that take minutes or an emulator: storms, refused system calls, aarch64, programs
//! written for libgc. The tests are in `tests/stress`; `vellum-conformance` has the code they share with
//! the product's tests.
