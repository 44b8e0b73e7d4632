//! GGUF files with decoded tensors: every block type gives as many values as its shape has (`docs/spec/checkpoints.md
//! §9`).
use std::io::{Seek, SeekFrom};
use std::path::Path;

use truecast_core::scaled::{Part, Parts};
use truecast_core::{CastSpec, DType};
use truecast_io::Source;
use truecast_io::folder::Folder;
use truecast_io::gguf::{Header, Keys, NewFile, NewTensor};
use truecast_kernel::CastOptions;
use truecast_kernel::scaled::Dequantizer;
use truecast_schemes::{Group, detect_gguf};

use crate::accepted;
use crate::input_file::InputFile;

thread_local! {
    static FILE: InputFile = InputFile::new("a.gguf");
}

/// The input is the whole file.
pub fn gguf_file(bytes: &[u8]) {
    FILE.with(|file| opened(file.write(bytes)));
}

fn opened(path: &Path) {
    let Some(folder) = accepted(Folder::of_file(path)) else { return };
    let source = &folder.shards()[0].source;
    written_again(source, path);
    let tensors: Vec<_> = source.tensors().iter().collect();
    let found = accepted(detect_gguf(&tensors, source.blocks()));
    found.iter().flat_map(|found| &found.groups).for_each(|group| decode(&folder, group));
}

fn written_again(source: &Source, path: &Path) {
    let read = source.gguf().expect("a GGUF file");
    let keys = Keys::of(source).expect("keys of a file that fits in memory");
    let tensors = read.tensors.iter();
    let tensors = tensors.map(|t| NewTensor { name: t.name.clone(), block: t.block, shape: t.shape.clone() }).collect();
    let new = NewFile { keys, tensors };
    let data: u64 = new.tensors.iter().map(|t| t.bytes().next_multiple_of(new.keys.alignment())).sum();
    if new.check(path).is_err() || data > 1 << 24 {
        return;
    }
    let mut bytes = new.keys.header(&new.tensors);
    bytes.resize(bytes.len() + data as usize, 0);
    let again = Header::parse(&bytes).expect("what is written is read");
    let said = |header: &Header| {
        let tensors: Vec<_> = header.tensors.iter().map(|t| (t.name.clone(), t.block, t.shape.clone())).collect();
        format!("{:?} {tensors:?}", header.metadata)
    };
    assert_eq!(said(&again), said(read));
}

/// Decodes the first blocks of a tensor to f32.
fn decode(folder: &Folder, group: &Group) {
    assert_eq!(group.shape.iter().product::<u64>(), group.layout.elements());
    let source = &folder.shards()[0].source;
    let exec = CastOptions::default();
    let dequantizer =
        Dequantizer::new(&group.layout, &CastSpec::copy(DType::F32), &exec).expect("a layout that was checked");
    for window in dequantizer.windows(0..group.layout.elements().min(1 << 12)) {
        let mut held = [Vec::new(), Vec::new()];
        for read in dequantizer.reads(&window) {
            let tensor = group.tensor(read.part).expect("a part that the layout has");
            let mut pieces = source.window(tensor).expect("a tensor of a GGUF file lies as it is");
            let into = &mut held[usize::from(read.part == Part::Global)];
            for piece in 0..read.count {
                let mut bytes = vec![0; read.len as usize];
                pieces.seek(SeekFrom::Start(read.first + piece * read.stride)).expect("offsets within the tensor");
                pieces.fill(&mut bytes).expect("bytes within the file");
                into.extend(bytes);
            }
        }
        let elements = window.elements();
        let mut values = vec![0; (elements.end - elements.start) as usize * 4];
        let parts = Parts { codes: &held[0], global: &held[1], ..Parts::default() };
        // An invalid scale is an error.
        let _ = dequantizer.run(&window, &parts, &mut values);
    }
}
