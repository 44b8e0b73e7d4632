//! Directory of an archive, and members as streams.
//!
//! Stored members are read in place, deflated members are inflated as a stream, so several can be open at once.
//! [`crate::reader`] verifies the checksums.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use flate2::read::DeflateDecoder;
use foldhash::{HashSet, HashSetExt};
use truecast_core::DType;
use zip::{CompressionMethod, ZipArchive, result::ZipError};

use crate::error::npz::ArchiveError;
use crate::error::{Error, ReadError};
use crate::npy;
use crate::tensor::Tensor;
use crate::window::Window;

/// Maximum length of a compressed member in Fortran order, because [`crate::fortran`] reads the member once per slab.
const MAX_FORTRAN_BYTES: u64 = 2 << 30;

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) name: String,
    is_deflated: bool,
    start: u64,
    end: u64,
    bytes: u64,
    pub(crate) checksum: u32,
}

#[derive(Debug)]
pub(crate) enum MemberStream {
    Stored(Window),
    Deflated(Box<DeflateDecoder<Window>>),
}

impl Read for MemberStream {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        match self {
            MemberStream::Stored(window) => window.read(buf),
            MemberStream::Deflated(decoder) => decoder.read(buf),
        }
    }
}

impl Member {
    pub(crate) fn stream(&self, file: &Arc<File>) -> MemberStream {
        let window = Window::new(file.clone(), self.start, self.end);
        if self.is_deflated {
            MemberStream::Deflated(Box::new(DeflateDecoder::new(window)))
        } else {
            MemberStream::Stored(window)
        }
    }

    /// File offset of byte `offset` of a stored member. `None` for a compressed member.
    pub(crate) fn file_offset(&self, offset: u64) -> Option<u64> {
        (!self.is_deflated).then_some(self.start + offset)
    }
}

pub(crate) type Contents = Vec<(Tensor, Member, npy::Header)>;

/// Lists an archive; `path` is for errors.
///
/// `from` applies to members without a type. If all members have a type, `from` applies to members with elements of
/// its size. Fails if `from` fits no member, or if a member without a type has elements of another size.
pub(crate) fn open(path: &Path, file: &Arc<File>, file_bytes: u64, from: Option<DType>) -> Result<Contents, Error> {
    let failed = |error: ReadError<ArchiveError>| error.at(path, "reading the archive");
    let wrong = |member: Member, cause| Error::Npy { path: path.into(), member: Some(member.name), cause };
    let mut is_from_used = from.is_none();
    let mut members = Vec::new();
    for member in directory(file, file_bytes).map_err(failed)? {
        match npy::Header::read(&mut member.stream(file), member.bytes) {
            Ok(header) => members.push((member, header)),
            Err(ReadError::Cause(cause)) => return Err(wrong(member, cause)),
            Err(ReadError::Io(error)) => return Err(failed(inflating(&member.name, error))),
        }
    }
    let states_type = |header: &npy::Header| header.dtype(None).is_ok();
    let all_state_types = members.iter().all(|(_, header)| states_type(header));
    let mut contents = Vec::new();
    for (member, header) in members {
        let from = from.filter(|_| all_state_types || !states_type(&header));
        let dtype = match header.dtype(from) {
            Ok(dtype) => {
                is_from_used |= from.is_some();
                dtype
            }
            Err(cause) => match header.dtype(None) {
                Ok(own) => own,
                Err(_) => return Err(wrong(member, cause)),
            },
        };
        if header.is_fortran() && member.is_deflated && member.bytes > MAX_FORTRAN_BYTES {
            let (bytes, most) = (member.bytes, MAX_FORTRAN_BYTES);
            return Err(failed(ArchiveError::Fortran { member: member.name, bytes, most }.into()));
        }
        let name = member.name.strip_suffix(".npy").unwrap_or(&member.name).into();
        let tensor = Tensor { name, dtype, layout: header.layout(), shape: header.shape.as_slice().into() };
        contents.push((tensor, member, header));
    }
    match from {
        Some(from) if !is_from_used => Err(failed(ArchiveError::FromUnused { from }.into())),
        _ => Ok(contents),
    }
}

pub(crate) fn inflating(member: &str, error: io::Error) -> ReadError<ArchiveError> {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
            ArchiveError::Inflate { member: member.to_owned(), reason: error.to_string() }.into()
        }
        _ => error.into(),
    }
}

fn directory(file: &Arc<File>, file_bytes: u64) -> Result<Vec<Member>, ReadError<ArchiveError>> {
    let reader = BufReader::new(Window::new(file.clone(), 0, file_bytes));
    let mut archive = ZipArchive::new(reader).map_err(unreadable)?;
    if archive.has_duplicate_names() {
        return Err(ArchiveError::DuplicateMembers.into());
    }
    let mut members = Vec::new();
    // A flag selects each name's encoding, so equal text may have different bytes.
    let mut names = HashSet::new();
    for index in 0..archive.len() {
        let entry = archive.by_index_raw(index).map_err(unreadable)?;
        let member = entry.name().map_err(unreadable)?.into_owned();
        if !member.ends_with(".npy") {
            return Err(ArchiveError::NotNpy { member }.into());
        }
        if entry.encrypted() {
            return Err(ArchiveError::Encrypted { member }.into());
        }
        let is_deflated = match entry.compression() {
            CompressionMethod::Stored => false,
            CompressionMethod::Deflated => true,
            method => return Err(ArchiveError::Method { member, method: method.to_string() }.into()),
        };
        let start = entry.data_start().unwrap_or(u64::MAX);
        let (packed, bytes) = (entry.compressed_size(), entry.size());
        let end = start.checked_add(packed).filter(|&end| end <= file_bytes && (is_deflated || packed == bytes));
        let Some(end) = end else {
            return Err(ArchiveError::Place { member, offset: start, bytes: packed.max(bytes) }.into());
        };
        if !names.insert(member.clone()) {
            return Err(ArchiveError::DuplicateMember { member }.into());
        }
        members.push(Member { name: member, is_deflated, start, end, bytes, checksum: entry.crc32() });
    }
    if archive.has_overlapping_entries().map_err(unreadable)? {
        return Err(ArchiveError::Overlap.into());
    }
    members.sort_by_key(|m| (m.start, m.end));
    Ok(members)
}

fn unreadable(error: ZipError) -> ReadError<ArchiveError> {
    match error {
        ZipError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => error.into(),
        error => {
            let reason = error.to_string().chars().take(200).flat_map(|c| c.escape_debug()).collect();
            ArchiveError::Directory { reason }.into()
        }
    }
}
