//! Tests of Vellum that need minutes or an emulator: page migration without end, refused system calls,
//! aarch64, programs written for libgc. The tests are in `tests/stress`; code that they share with the
//! product's tests is in `vellum-conformance`.
