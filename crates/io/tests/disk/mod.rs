//! Files for tests, each in its own temporary folder.

#![allow(dead_code)] // Every test file uses a part.

use std::collections::BTreeMap;
use std::io::{Cursor, Write};
use std::path::PathBuf;

use truecast_core::DType;
use truecast_io::{Error, Existing, FileFormat, Source, Tensor, Writer, layout_for};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

pub struct Disk {
    pub folder: tempfile::TempDir,
    pub path: PathBuf,
}

/// A new folder with the path of a missing file.
pub fn empty(name: &str) -> Disk {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    Disk { folder, path }
}

pub fn file(name: &str, bytes: &[u8]) -> Disk {
    let disk = empty(name);
    std::fs::write(&disk.path, bytes).unwrap();
    disk
}

impl Disk {
    pub fn open(&self) -> Result<Source, Error> {
        Source::open(&self.path, None)
    }

    pub fn open_as(&self, from: DType) -> Result<Source, Error> {
        Source::open(&self.path, Some(from))
    }

    pub fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

pub fn archive(members: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in members {
        zip.start_file(*name, SimpleFileOptions::default().compression_method(method)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

pub fn bytes_of(source: &Source, index: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = vec![0; source.tensors()[index].bytes() as usize];
    source.reader(index)?.read(&mut bytes)?;
    Ok(bytes)
}

pub fn tensor(kind: FileFormat, name: &str, dtype: DType, shape: &[u64]) -> Tensor {
    Tensor { name: name.into(), dtype, layout: layout_for(kind, dtype).unwrap(), shape: shape.into() }
}

/// Writes a whole container; `data` is in the order of `tensors`.
pub fn write(disk: &Disk, tensors: &[Tensor], data: &[Vec<u8>], metadata: &[(&str, &str)]) -> Result<u64, Error> {
    let kind = FileFormat::of_path(&disk.path).unwrap();
    let metadata: BTreeMap<String, String> = metadata.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    let mut writer = Writer::create(&disk.path, kind, tensors.to_vec(), &metadata, Existing::Refuse)?;
    for index in writer.order().to_vec() {
        writer.write(&data[index])?;
    }
    writer.finish()
}
