//! Stable codes of errors (`docs/interfaces.md §5`).

use std::io;

use truecast_core::ErrorCode;

use super::denied::DeniedTensor;
use super::folder::FolderError;
use super::gguf::HeaderError as Gguf;
use super::npy::HeaderError as Npy;
use super::npz::ArchiveError;
use super::onnx::{ExternalError, ProtoError, TensorError};
use super::safetensors::HeaderError as Safetensors;
use super::{Error, ErrorKind};

impl Error {
    /// Class of the error.
    pub fn kind(&self) -> ErrorKind {
        self.error_code().kind()
    }

    /// Stable code of the error.
    pub fn error_code(&self) -> ErrorCode {
        match self {
            Error::UnknownKind { .. } => ErrorCode::UnknownFileKind,
            Error::Replaced { .. } => ErrorCode::WrongFileKind,
            Error::Exists { .. } => ErrorCode::DestinationExists,
            Error::DestinationNotRegular { .. }
            | Error::LinkInside { .. }
            | Error::NotAModel { .. }
            | Error::NotOneTensor { .. } => ErrorCode::UnsuitableDestination,
            Error::FromNotApplicable { .. } | Error::FromWidth { .. } => ErrorCode::TypeNotApplicable,
            Error::Refused { cause, .. } => of_denied(cause),
            Error::HeaderTooLong { .. } => ErrorCode::LimitExceeded,
            Error::DataLength { .. } => ErrorCode::InvalidValue,
            Error::NotRegular { .. } => ErrorCode::NotRegularFile,
            Error::Hex { .. } => ErrorCode::MalformedFile,
            Error::Safetensors { cause, .. } => of_safetensors(cause),
            Error::Gguf { cause, .. } => of_gguf(cause),
            Error::Npy { cause, .. } => of_npy(cause),
            Error::Npz { cause, .. } => of_npz(cause),
            Error::Proto { cause, .. } => of_proto(cause),
            Error::Folder { cause, .. } => of_folder(cause),
            Error::Descr { .. } => ErrorCode::TypeMismatch,
            Error::Rows { .. } | Error::Empty { .. } => ErrorCode::ShapeMismatch,
            Error::Wide { .. } | Error::CodeTooWide { .. } => ErrorCode::InvalidCode,
            Error::Memory { .. } => ErrorCode::OutOfMemory,
            Error::Space { .. } => ErrorCode::DiskFull,
            Error::ReadTensor { source, .. } | Error::Io { source, .. } => of_system(source),
        }
    }
}

fn of_system(error: &io::Error) -> ErrorCode {
    match error.kind() {
        io::ErrorKind::NotFound => ErrorCode::NotFound,
        io::ErrorKind::PermissionDenied => ErrorCode::PermissionDenied,
        io::ErrorKind::StorageFull => ErrorCode::DiskFull,
        io::ErrorKind::OutOfMemory => ErrorCode::OutOfMemory,
        _ => ErrorCode::IoError,
    }
}

fn of_denied(cause: &DeniedTensor) -> ErrorCode {
    match cause {
        DeniedTensor::NoForm(_) => ErrorCode::UnstorableType,
        DeniedTensor::DuplicateName | DeniedTensor::ReservedName => ErrorCode::DuplicateName,
        DeniedTensor::PartialBlock { .. } | DeniedTensor::PartialByte { .. } | DeniedTensor::OddLastDimension => {
            ErrorCode::ShapeMismatch
        }
        DeniedTensor::Opaque | DeniedTensor::Layout { .. } => ErrorCode::UnsupportedType,
        _ => ErrorCode::LimitExceeded,
    }
}

fn of_safetensors(cause: &Safetensors) -> ErrorCode {
    match cause {
        Safetensors::TooShort { .. } | Safetensors::HeaderPastEnd { .. } => ErrorCode::TruncatedFile,
        Safetensors::DataLength { end, data_bytes } if end > data_bytes => ErrorCode::TruncatedFile,
        Safetensors::HeaderTooLong { .. } | Safetensors::ShapeTooBig { .. } | Safetensors::RankTooHigh { .. } => {
            ErrorCode::LimitExceeded
        }
        Safetensors::DuplicateTensor { .. }
        | Safetensors::DuplicateField { .. }
        | Safetensors::DuplicateMetadata
        | Safetensors::DuplicateMetadataKey { .. } => ErrorCode::DuplicateName,
        Safetensors::UnknownDtype { .. } => ErrorCode::UnsupportedType,
        _ => ErrorCode::MalformedFile,
    }
}

fn of_gguf(cause: &Gguf) -> ErrorCode {
    match cause {
        Gguf::BigEndian | Gguf::Version { .. } => ErrorCode::UnsupportedFile,
        Gguf::Truncated { .. } | Gguf::PastEnd { .. } => ErrorCode::TruncatedFile,
        Gguf::TooMany { .. }
        | Gguf::TextTooLong { .. }
        | Gguf::TooMuchText { .. }
        | Gguf::KeysTooLong { .. }
        | Gguf::TooDeep { .. }
        | Gguf::Rank { .. }
        | Gguf::ShapeTooBig { .. } => ErrorCode::LimitExceeded,
        Gguf::DuplicateKey { .. } | Gguf::DuplicateTensor { .. } | Gguf::TensorOfTwoParts { .. } => {
            ErrorCode::DuplicateName
        }
        Gguf::BlockType { .. } => ErrorCode::UnsupportedType,
        Gguf::Columns { .. } | Gguf::OriginalShape { .. } => ErrorCode::ShapeMismatch,
        Gguf::MissingPart { .. } => ErrorCode::MissingFile,
        Gguf::PartName { .. } | Gguf::OtherPart { .. } | Gguf::TensorsOfParts { .. } => {
            ErrorCode::InconsistentCheckpoint
        }
        _ => ErrorCode::MalformedFile,
    }
}

fn of_npy(cause: &Npy) -> ErrorCode {
    match cause {
        Npy::Version { .. } | Npy::Structured => ErrorCode::UnsupportedFile,
        Npy::HeaderTooLong { .. } | Npy::RankTooHigh | Npy::ShapeTooBig => ErrorCode::LimitExceeded,
        Npy::HeaderPastEnd { .. } => ErrorCode::TruncatedFile,
        Npy::DataLength { expected, actual, .. } if expected > actual => ErrorCode::TruncatedFile,
        Npy::DuplicateKey { .. } => ErrorCode::DuplicateName,
        Npy::FromNeeded { .. } => ErrorCode::TypeNotStated,
        Npy::FromWidth { .. } | Npy::FromText { .. } => ErrorCode::TypeNotApplicable,
        Npy::Descr { .. } => ErrorCode::UnsupportedType,
        _ => ErrorCode::MalformedFile,
    }
}

fn of_npz(cause: &ArchiveError) -> ErrorCode {
    match cause {
        ArchiveError::DuplicateMember { .. } | ArchiveError::DuplicateMembers => ErrorCode::DuplicateName,
        ArchiveError::NotNpy { .. }
        | ArchiveError::Encrypted { .. }
        | ArchiveError::Method { .. }
        | ArchiveError::Fortran { .. } => ErrorCode::UnsupportedFile,
        ArchiveError::FromUnused { .. } => ErrorCode::TypeNotApplicable,
        _ => ErrorCode::MalformedFile,
    }
}

fn of_proto(cause: &ProtoError) -> ErrorCode {
    match cause {
        ProtoError::Truncated { .. } | ProtoError::Length { .. } => ErrorCode::TruncatedFile,
        ProtoError::Repeated { .. } | ProtoError::TwoVersions { .. } | ProtoError::TwoFunctions { .. } => {
            ErrorCode::DuplicateName
        }
        ProtoError::TooDeep { .. } | ProtoError::TooMuch { .. } => ErrorCode::LimitExceeded,
        ProtoError::Tensor { cause, .. } => of_tensor(cause),
        _ => ErrorCode::MalformedFile,
    }
}

fn of_tensor(cause: &TensorError) -> ErrorCode {
    match cause {
        TensorError::External(ExternalError::NotFound { .. }) => ErrorCode::MissingFile,
        TensorError::External(ExternalError::PastEnd { .. }) => ErrorCode::TruncatedFile,
        TensorError::External(_) => ErrorCode::ExternalData,
        TensorError::ShapeTooBig | TensorError::RankTooHigh | TensorError::TextTooLong { .. } => {
            ErrorCode::LimitExceeded
        }
        TensorError::RawLength { .. } | TensorError::Entries { .. } | TensorError::MoreEntries { .. } => {
            ErrorCode::ShapeMismatch
        }
        TensorError::EntryTooWide { .. } | TensorError::TailBits => ErrorCode::InvalidCode,
        TensorError::NotUtf8 { .. } | TensorError::NulAtEnd { .. } => ErrorCode::InvalidText,
        TensorError::DataType { .. } | TensorError::Unreadable { .. } => ErrorCode::UnsupportedType,
        TensorError::NotOfKind { .. } => ErrorCode::TypeMismatch,
        _ => ErrorCode::MalformedFile,
    }
}

fn of_folder(cause: &FolderError) -> ErrorCode {
    match cause {
        FolderError::NoShards { .. }
        | FolderError::SeveralGguf { .. }
        | FolderError::Several { .. }
        | FolderError::Indices { .. } => ErrorCode::UnsuitableSource,
        FolderError::Link => ErrorCode::NotRegularFile,
        FolderError::TooLong { .. } | FolderError::TooManyValues => ErrorCode::LimitExceeded,
        FolderError::DuplicateKey { .. } | FolderError::DuplicateTensor { .. } => ErrorCode::DuplicateName,
        FolderError::MissingShard { .. } | FolderError::MissingPart { .. } => ErrorCode::MissingFile,
        FolderError::MissingTensor { .. } => ErrorCode::MissingTensor,
        FolderError::PartsOfTwo { .. } => ErrorCode::InconsistentCheckpoint,
        _ => ErrorCode::MalformedFile,
    }
}
