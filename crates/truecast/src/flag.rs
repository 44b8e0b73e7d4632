//! Table of the command's options: names on a command line and in Python, order in help. `setting` has the options of
//! specifications.
//!
//! Errors hold a `Flag`; the command adds the text to type.

use crate::setting::Setting;
use std::fmt;

/// Defines the options from a list of headings, each with its options in order.
macro_rules! flags {
    ($($heading:literal: $($flag:ident $name:literal),*;)*) => {
        /// An option of the command.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub enum Flag { $($($flag),*),* }

        impl Flag {
            /// All options, in the order of help.
            pub const ALL: &'static [Flag] = &[$($(Flag::$flag),*),*];

            /// Name on a command line, without dashes.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($(Flag::$flag => $name),*),* }
            }

            const fn heading(self) -> &'static str {
                match self { $($(Flag::$flag)|* => $heading),* }
            }
        }
    };
}

flags! {
    "Options": Exact "exact", Clauses "clauses", Table "table", Stats "stats", Check "check", Sizes "sizes", BestOf "best-of",
        Level "level", Only "only", Lines "lines", NoOpen "no-open", Port "port",
        Exhaustive "exhaustive", Files "files", Entry "entry", IrLayout "ir-layout", All "all";
    "Types and tensors": To "to", From "from", Rule "rule", Keep "keep", KeepPreset "keep-preset", Filter "filter",
        FromScheme "from-scheme", TrustScales "trust-scales", Nibbles "nibbles", Reference "reference",
        MinElements "min-elements", Lenient "lenient", FollowLinks "follow-links", Pairs "pairs";
    "Quantization": Scheme "scheme", Quantize "quantize", ScaleSearch "scale-search", MxScale "mx-scale",
        NonFinite "nonfinite", ActivationRanges "activation-ranges", Imatrix "imatrix", ShareGlobal "share-global", Relayout "relayout";
    "Specification": Spec "spec", Seed "seed", ExactNan "exact-nan", RandomBits "random-bits";
    "RESCALE": Multiplier "multiplier", Shift "shift", Scale "scale", InputZp "input-zp", OutputZp "output-zp",
        Scale32 "scale32", PerChannel "per-channel", InputUnsigned "input-unsigned", OutputUnsigned "output-unsigned";
    "System": System "system", Unsafe "unsafe", Strict "strict", PytorchScalar "pytorch-scalar",
        U64Target "u64-target", LhsRank "lhs-rank", RhsRank "rhs-rank", JaxX64 "jax-x64",
        TensorflowMode "tensorflow-mode";
    "Files": Input "input", Actual "actual", InputScale "input-scale", ActualScale "actual-scale", Output "output",
        OutputDir "output-dir", OutputFormat "output-format", Format "format", Force "force", Resume "resume",
        Part "part", Merge "merge", NoSidecars "no-sidecars", Like "like", KeepNames "keep-names", DryRun "dry-run", Report "report",
        FailOn "fail-on";
    "Sample": Full "full", Sample "sample", SampleSeed "sample-seed";
    "Resources": Measure "measure", Magnitudes "magnitudes", MaxMemory "max-memory", Threads "threads";
    "Printing": Sort "sort", Worst "worst", Summary "summary", Show "show", Json "json", Quiet "quiet", Wide "wide",
        Color "color", Help "help";
}

impl Flag {
    /// Finds an option by name; `-` and `_` are equivalent.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Flag> {
        let name = name.replace('_', "-");
        Flag::ALL.iter().copied().find(|flag| flag.name() == name)
    }

    /// Position of an option in help, and its heading. Options of specifications come after `--seed`.
    ///
    /// # Examples
    /// ```
    /// assert_eq!(truecast::flag::Flag::place("max-memory").unwrap().1, "Resources");
    /// assert_eq!(truecast::flag::Flag::place("int-overflow").unwrap().1, "Specification");
    /// ```
    #[must_use]
    pub fn place(name: &str) -> Option<(usize, &'static str)> {
        let flag = |flag: Flag| (flag as usize * 100, flag.heading());
        let setting = || Setting::all().position(|setting| setting.name() == name);
        Flag::of_name(name)
            .map(flag)
            .or_else(|| Some((Flag::Seed as usize * 100 + 1 + setting()?, Flag::Seed.heading())))
    }

    /// Names and letters of other tools for an option.
    #[must_use]
    pub fn aliases(name: &str) -> (&'static [&'static str], &'static [char]) {
        match name {
            "force" => (&["overwrite", "replace", "clobber", "yes"], &['f', 'y']),
            "to" => {
                (&["dtype", "type", "to-type", "target", "target-type", "out-type", "outtype", "precision"], &['t'])
            }
            "from" => (&["from-type", "src-type", "source-type", "input-type", "in-type"], &[]),
            "keep" => (&["exclude", "skip", "ignore"], &[]),
            "rounding" => (&["rounding-mode", "round"], &[]),
            "threads" => (&["jobs", "workers", "num-threads"], &['j']),
            "spec" => (&["standard", "specification"], &[]),
            "max-memory" => (&["memory", "mem", "max-mem"], &[]),
            "quiet" => (&["silent"], &['q']),
            _ => (&[], &[]),
        }
    }

    /// Keyword argument in Python.
    ///
    /// # Examples
    /// ```
    /// use truecast::flag::Flag;
    /// assert_eq!([Flag::From, Flag::KeepPreset].map(Flag::keyword), ["from_", "keep_preset"]);
    /// ```
    #[must_use]
    pub fn keyword(self) -> String {
        match self {
            Flag::From => "from_".into(),
            Flag::Rule => "rules".into(),
            Flag::NoSidecars => "sidecars".into(),
            other => other.name().replace('-', "_"),
        }
    }

    /// True for a switch, which takes no value.
    #[must_use]
    pub const fn is_switch(self) -> bool {
        use Flag::*;
        matches!(
            self,
            Exact
                | Clauses
                | Table
                | Stats
                | Check
                | Exhaustive
                | NoOpen
                | Files
                | TrustScales
                | KeepNames
                | Lenient
                | FollowLinks
                | ExactNan
                | Scale32
                | PerChannel
                | InputUnsigned
                | OutputUnsigned
                | Unsafe
                | Strict
                | PytorchScalar
                | Force
                | Resume
                | Merge
                | NoSidecars
                | DryRun
                | Magnitudes
                | Full
                | Summary
                | Json
                | Quiet
                | Wide
                | Help
        )
    }
}

impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.keyword())
    }
}
