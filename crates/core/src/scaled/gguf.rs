//! Fields that blocks of GGUF files have, named as in ggml (§9.2).
//!
//! `d`, `m` and `dmin` are f16. `qs` and `ql` hold codes or low bits of codes; `qh` and `hmask` hold high bits.

use super::block_type::BlockType;

macro_rules! blocks {
    ($($name:ident: $bytes:literal { $($field:ident: $len:literal),* })*) => {$(
        #[doc = concat!("A block of `", stringify!($name), "`, ", stringify!($bytes), " bytes.")]
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs, non_camel_case_types)]
        pub struct $name<'a> {
            $(pub $field: &'a [u8; $len]),*
        }

        const _: () = assert!(BlockType::$name.bytes() == $bytes && $bytes == 0 $(+ $len)*);

        impl<'a> $name<'a> {
            /// Splits the first bytes into the fields of a block.
            ///
            /// # Panics
            /// If `bytes` is shorter than a block.
            #[must_use]
            #[inline(always)]
            pub fn of(bytes: &'a [u8]) -> $name<'a> {
                let rest = bytes;
                $(let ($field, rest) = rest.split_first_chunk().expect("a whole block");)*
                let _ = rest;
                $name { $($field),* }
            }
        }
    )*

    /// The same fields, to be written.
    pub mod mutable {$(
        #[doc = concat!("A block of `", stringify!($name), "`, ", stringify!($bytes), " bytes.")]
        #[derive(Debug)]
        #[allow(missing_docs, non_camel_case_types)]
        pub struct $name<'a> {
            $(pub $field: &'a mut [u8; $len]),*
        }

        impl<'a> $name<'a> {
            /// Splits the first bytes into the fields of a block.
            ///
            /// # Panics
            /// If `bytes` is shorter than a block.
            #[must_use]
            #[inline(always)]
            pub fn of(bytes: &'a mut [u8]) -> $name<'a> {
                let rest = bytes;
                $(let ($field, rest) = rest.split_first_chunk_mut().expect("a whole block");)*
                let _ = rest;
                $name { $($field),* }
            }
        }
    )*}};
}

blocks! {
    Q4_0: 18 { d: 2, qs: 16 }
    Q4_1: 20 { d: 2, m: 2, qs: 16 }
    Q5_0: 22 { d: 2, qh: 4, qs: 16 }
    Q5_1: 24 { d: 2, m: 2, qh: 4, qs: 16 }
    Q8_0: 34 { d: 2, qs: 32 }
    Q2_K: 84 { scales: 16, qs: 64, d: 2, dmin: 2 }
    Q3_K: 110 { hmask: 32, qs: 64, scales: 12, d: 2 }
    Q4_K: 144 { d: 2, dmin: 2, scales: 12, qs: 128 }
    Q5_K: 176 { d: 2, dmin: 2, scales: 12, qh: 32, qs: 128 }
    Q6_K: 210 { ql: 128, qh: 64, scales: 16, d: 2 }
    Mxfp4: 17 { e: 1, qs: 16 }
    Nvfp4: 36 { d: 4, qs: 32 }
    Q8_1: 36 { d: 2, s: 2, qs: 32 }
    Q8_K: 292 { d: 4, qs: 256, bsums: 32 }
    IQ2_XXS: 66 { d: 2, qs: 64 }
    IQ2_XS: 74 { d: 2, qs: 64, scales: 8 }
    IQ2_S: 82 { d: 2, qs: 32, signs: 32, qh: 8, scales: 8 }
    IQ3_XXS: 98 { d: 2, qs: 64, scales: 32 }
    IQ3_S: 110 { d: 2, qs: 64, qh: 8, signs: 32, scales: 4 }
    IQ1_S: 50 { d: 2, qs: 32, qh: 16 }
    IQ1_M: 56 { qs: 32, qh: 16, scales: 8 }
    IQ4_NL: 18 { d: 2, qs: 16 }
    IQ4_XS: 136 { d: 2, scales_h: 2, scales_l: 4, qs: 128 }
    TQ1_0: 54 { qs: 48, qh: 4, d: 2 }
    TQ2_0: 66 { qs: 64, d: 2 }
    Q1_0: 18 { d: 2, qs: 16 }
    Q2_0: 18 { d: 2, qs: 16 }
}
