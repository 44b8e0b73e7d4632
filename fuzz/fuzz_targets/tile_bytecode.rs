#![no_main]
libfuzzer_sys::fuzz_target!(|input: &[u8]| truecast_fuzz::tile_bytecode(input));
