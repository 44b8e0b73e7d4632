//! Enums with a word for each variant.

/// Defines enums with a word per variant, and their `ALL`, `name`, `of_name` and `Display`. Only for the crates of
/// truecast.
#[doc(hidden)]
#[macro_export]
macro_rules! words {
    ($($(#[$doc:meta])* pub enum $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$variant_doc])* $variant),* }

        impl $name {
            /// Every variant, in order.
            pub const ALL: [$name; [$($word),*].len()] = [$($name::$variant),*];

            /// Returns the name in requests, reports and files.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $word),* }
            }

            /// Returns the variant with this name.
            #[must_use]
            pub fn of_name(name: &str) -> Option<$name> {
                $name::ALL.into_iter().find(|one| one.name() == name)
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.pad(self.name())
            }
        }
    )*};
}

pub(crate) use words;
