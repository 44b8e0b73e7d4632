//! Fields of the operations other than conversions, needed to skip them (§10.8).
//!
//! A layout is a list of words, one per field: `t` result type; `t*` count and result types; `f` flags; `e`
//! enumeration value; `n` integer; `s` string; `a` attribute; `a*` count and attributes; `b` byte; `L4` count and i32
//! elements; `L1` count and bytes; `o` operand; `o*` count and operands; `R` regions. `o?k`, `e?k` and `h?k` (an
//! untagged dictionary) exist only if bit k of the flags is set. `13.4:f` exists only from version 13.4 on.

use truecast_core::spec::tile::Release;

pub(crate) struct Layout {
    pub opcode: u64,
    pub name: &'static str,
    pub since: Release,
    pub fields: &'static str,
}

pub(super) fn of_opcode(opcode: u64) -> Option<&'static Layout> {
    LAYOUTS.iter().find(|l| l.opcode == opcode)
}

macro_rules! layouts {
    ($($fields:literal: $($name:ident $opcode:literal $($since:ident)?),*;)*) => {
        &[$($(Layout {
            opcode: $opcode,
            name: stringify!($name),
            since: layouts!(@since $($since)?),
            fields: $fields,
        }),*),*]
    };
    (@since) => { Release::V13_1 };
    (@since $since:ident) => { Release::$since };
}

#[rustfmt::skip]
pub(crate) const LAYOUTS: &[Layout] = layouts! {
    "t o": absf 0x00, absi 0x01, broadcast 0x0B, ceil 0x0D, cos 0x12, cosh 0x13, floor 0x27, log 0x3F, log2 0x40,
        make_partition_view 0x42, negf 0x4F, reshape 0x5B, sin 0x62, sinh 0x63, tan 0x69,
        make_gather_scatter_view 0x73 V13_3, make_strided_view 0x74 V13_3;
    "t o o": andi 0x04, mulhii 0x4D, offset 0x51, ori 0x52, pow 0x54, remf 0x59, xori 0x6C, atan2 0x6E V13_2;
    "t o o o": select 0x5F;
    "t o o o o o": mmaf_scaled 0x72 V13_3;
    "t e o o": addi 0x03, maxi 0x46, mini 0x48, muli 0x4E, remi 0x5A, shli 0x60, shri 0x61, subi 0x68;
    "t e e o o": cmpf 0x0E, cmpi 0x0F, divi 0x15;
    "t e e o o o": mmai 0x4A;
    "t f o": exp2 0x18, rsqrt 0x5D;
    "t f o o": maxf 0x45, minf 0x47;
    "t f e o": sqrt 0x64;
    "t f e o o": addf 0x02, divf 0x14, mulf 0x4C, subf 0x67;
    "t f e o o o": fma 0x28;
    "t 13.3:e o": exp 0x17;
    "t 13.2:e o": negi 0x50, tanh 0x6A;
    "t 13.3:f o o o": mmaf 0x49;
    "t": iota 0x3A, make_token 0x44;
    "t t t": get_num_tile_blocks 0x2E, get_tile_block_id 0x30;
    "t s": get_global 0x2C;
    "t n o o": cat 0x0C;
    "t L4 o": permute 0x53;
    "t a o": assume 0x06;
    "t f n n": alloca 0x71 V13_3;
    "t* o": get_index_space_shape 0x2D, get_tensor_shape 0x2F;
    "t* o*": extract 0x26, join_tokens 0x3C, break 0x0A, continue 0x11, yield 0x6D;
    "t* o o* o*": make_tensor_view 0x43;
    "s o": assert 0x05;
    "t* 13.2:f s o* o?0": print_tko 0x55;
    "t t f e e?0 h?1 o o?2 o?3 o?4": load_ptr_tko 0x3D;
    "t f e e?0 h?1 o o o?2 o?3": store_ptr_tko 0x65;
    "t* f e e?0 h?1 13.4:L1 o o* o?2": load_view_tko 0x3E;
    "t* f e e?0 h?1 13.4:L1 o o o* o?2": store_view_tko 0x66;
    "t t f e e o o o o?0 o?1": atomic_cas_tko 0x07;
    "t t f e e e o o o?0 o?1": atomic_rmw_tko 0x08;
    "t* f e e e 13.5:L1 o o* o o?0": atomic_red_view_tko 0x75 V13_3;
    "t* 13.2:f o* R": for 0x29;
    "t* o R": if 0x32;
    "t* o* R": loop 0x41;
    "t* n a* o* R": reduce 0x58;
    "t* n b a* o* R": scan 0x5E;
};
