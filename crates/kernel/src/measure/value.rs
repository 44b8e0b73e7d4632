//! Value types for passes: the bits of an f32 or of an f64.

use crate::slot::Slot;

/// Value in a tile: the bits of an f32 or of an f64.
pub(crate) trait Value: Slot {
    type Float: Copy + PartialOrd + Into<f64>;
    /// Magnitudes as integers in the same order; NaN is larger than infinity. A minimum or maximum of integers compiles
    /// to one instruction. For floats in memory, the compiler emits slow masked stores.
    type Order: Copy + Ord;
    const ZERO: Self::Float;
    const INFINITY: Self::Float;
    const ENDS: [Self::Order; 2];

    fn float(bytes: Self::Bytes) -> Self::Float;
    fn magnitude(bytes: Self::Bytes) -> Self::Float;
    fn order(bytes: Self::Bytes) -> Self::Order;
    fn of_order(order: Self::Order) -> f64;
    fn is_negative(bytes: Self::Bytes) -> bool;
    /// Least value of this type that is not below `number`. Values below the result are exactly the values below
    /// `number`.
    fn at_least(number: f64) -> Self::Float;
    fn bytes(values: &[Self::Bytes]) -> &[u8];

    #[inline(always)]
    fn value(bytes: Self::Bytes) -> f64 {
        Self::float(bytes).into()
    }
}

macro_rules! value {
    ($($slot:ty, $float:ident, $order:ident;)*) => {$(
        impl Value for $slot {
            type Float = $float;
            type Order = $order;
            const ENDS: [$order; 2] = [0, $float::INFINITY.to_bits() as $order];
            const ZERO: $float = 0.0;
            const INFINITY: $float = $float::INFINITY;

            #[inline(always)]
            fn float(bytes: Self::Bytes) -> $float {
                $float::from_le_bytes(bytes)
            }
            #[inline(always)]
            fn magnitude(bytes: Self::Bytes) -> $float {
                Self::float(bytes).abs()
            }
            #[inline(always)]
            fn order(bytes: Self::Bytes) -> $order {
                $order::from_le_bytes(bytes) & $order::MAX
            }
            #[inline(always)]
            fn of_order(order: $order) -> f64 {
                $float::from_bits(order as $slot).into()
            }
            #[inline(always)]
            fn is_negative(bytes: Self::Bytes) -> bool {
                Self::float(bytes).is_sign_negative()
            }
            #[inline(always)]
            fn at_least(number: f64) -> $float {
                let near = number as $float;
                if (near as f64) < number { near.next_up() } else { near }
            }
            #[inline(always)]
            fn bytes(values: &[Self::Bytes]) -> &[u8] {
                values.as_flattened()
            }
        }
    )*};
}

value! {
    u32, f32, i32;
    u64, f64, i64;
}

/// Neither infinite nor NaN. The compiler does not rewrite this integer test.
#[inline(always)]
pub(super) fn finite(v: f64) -> bool {
    v.to_bits() & 0x7ff0_0000_0000_0000 != 0x7ff0_0000_0000_0000
}
