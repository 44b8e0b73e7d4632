//! Stable codes of errors, for scripts and tests. `docs/interfaces.md §5` describes every code.

use crate::error_kind::ErrorKind;
use core::fmt;

macro_rules! codes {
    ($($kind:ident { $($code:ident $name:literal)* })*) => {
        /// Cause of an error, as a stable word (`docs/interfaces.md §5`). The cause determines the class; the class
        /// determines the exit code.
        ///
        /// # Examples
        /// ```
        /// use truecast_core::{ErrorCode, ErrorKind, DType, spec::onnx};
        /// let error = onnx::Cast::to(DType::I48).resolve(DType::F32).unwrap_err();
        /// assert_eq!(error.error_code().name(), "unsupported-type");
        /// assert_eq!(ErrorCode::UnsupportedType.kind(), ErrorKind::Input);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[allow(missing_docs)] // The table of §5 describes them.
        pub enum ErrorCode { $($($code,)*)* }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &[ErrorCode] = &[$($(ErrorCode::$code,)*)*];

            /// Returns the stable word.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $($(ErrorCode::$code => $name,)*)* }
            }

            /// Returns the class of the error.
            #[must_use]
            pub const fn kind(self) -> ErrorKind {
                match self { $($(ErrorCode::$code => ErrorKind::$kind,)*)* }
            }
        }
    };
}

codes! {
    Usage {
        UnknownCommand "unknown-command"
        UnknownOption "unknown-option"
        InapplicableOption "inapplicable-option"
        ConflictingOptions "conflicting-options"
        MissingArgument "missing-argument"
        UnexpectedArgument "unexpected-argument"
        InvalidValue "invalid-value"
        UnknownType "unknown-type"
        AmbiguousType "ambiguous-type"
        TypeNotStated "type-not-stated"
        TypeNotApplicable "type-not-applicable"
        UnknownSpec "unknown-spec"
        UnknownVersion "unknown-version"
        InvalidAttribute "invalid-attribute"
        UnknownScheme "unknown-scheme"
        UnwritableScheme "unwritable-scheme"
        UnquantizableTensor "unquantizable-tensor"
        InexactRelayout "inexact-relayout"
        ScalesLost "scales-lost"
        InvalidPattern "invalid-pattern"
        UnmatchedPattern "unmatched-pattern"
        UnknownTensor "unknown-tensor"
        UnknownFileKind "unknown-file-kind"
        UnsuitableSource "unsuitable-source"
        UnsuitableDestination "unsuitable-destination"
        UnstorableType "unstorable-type"
        DestinationExists "destination-exists"
        DestinationBusy "destination-busy"
        SameFile "same-file"
        NotResumable "not-resumable"
        MemoryLimit "memory-limit"
    }
    Input {
        TruncatedFile "truncated-file"
        MalformedFile "malformed-file"
        UnsupportedFile "unsupported-file"
        WrongFileKind "wrong-file-kind"
        NotRegularFile "not-regular-file"
        MissingFile "missing-file"
        MissingTensor "missing-tensor"
        DuplicateName "duplicate-name"
        ExternalData "external-data"
        LimitExceeded "limit-exceeded"
        ShapeMismatch "shape-mismatch"
        TypeMismatch "type-mismatch"
        InvalidCode "invalid-code"
        InvalidText "invalid-text"
        RefusedValue "refused-value"
        UnsupportedType "unsupported-type"
        UnsupportedPair "unsupported-pair"
        PromotionRefused "promotion-refused"
        IllegalOperation "illegal-operation"
        UnsupportedOperator "unsupported-operator"
        UndefinedResult "undefined-result"
        UnsupportedScheme "unsupported-scheme"
        InvalidConfiguration "invalid-configuration"
        UnknownQuantization "unknown-quantization"
        InconsistentCheckpoint "inconsistent-checkpoint"
        ScaleMissing "scale-missing"
        OrphanTensor "orphan-tensor"
    }
    System {
        NotFound "not-found"
        PermissionDenied "permission-denied"
        DiskFull "disk-full"
        OutOfMemory "out-of-memory"
        IoError "io-error"
        Interrupted "interrupted"
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
