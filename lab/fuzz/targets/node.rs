#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| vellum_fuzz::node(data));
