//! Reads an array that is stored in Fortran order (first index fastest). The elements come out in C order (last index
//! fastest).
//!
//! A slab is a range of consecutive elements in C order. Each slab is gathered in memory in one forward pass over the
//! file.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use crate::npz::{Member, MemberStream};
use crate::room;
use crate::window::{Window, shrunk};

pub(crate) const SLAB_BYTES: u64 = 32 << 20;

#[derive(Debug)]
pub(crate) enum Place {
    /// In a randomly accessible file.
    Window(Window),
    /// In a compressed member, from `offset`. Each slab reads the member again from its beginning.
    Member { file: Arc<File>, member: Box<Member>, offset: u64 },
}

#[derive(Debug)]
pub(crate) struct FortranData {
    place: Place,
    /// Dimensions other than 1. The last axis runs over the bytes of an element.
    axes: Vec<Axis>,
    /// Index of the axis that is divided into slabs. One step along this axis fits into a slab.
    split: usize,
    slab_bytes: u64,
    /// Bytes in C order, beginning at position `first` of the data.
    slab: Vec<u8>,
    first: u64,
    position: u64,
}

/// A dimension. The distance in bytes between neighbors is `here` in C order, and `file` in Fortran order.
#[derive(Clone, Copy, Debug)]
struct Axis {
    len: u64,
    here: u64,
    file: u64,
}

impl FortranData {
    /// Plans the slabs for elements of `element` bytes; the data must be shorter than 2^63 bytes.
    pub(crate) fn new(place: Place, shape: &[u64], element: u64, slab_bytes: u64) -> FortranData {
        let (mut axes, mut file) = (Vec::new(), element);
        for &len in shape.iter().filter(|len| **len != 1) {
            axes.push(Axis { len, here: 0, file });
            file *= len;
        }
        axes.push(Axis { len: element, here: 0, file: 1 });
        let mut here = 1;
        for axis in axes.iter_mut().rev() {
            axis.here = here;
            here *= axis.len;
        }
        let slab_bytes = slab_bytes.min(here);
        let split = axes.iter().position(|axis| axis.here <= slab_bytes).unwrap_or(axes.len() - 1);
        FortranData { place, axes, split, slab_bytes, slab: Vec::new(), first: 0, position: 0 }
    }

    pub(crate) fn member(&self) -> Option<&str> {
        match &self.place {
            Place::Window(_) => None,
            Place::Member { member, .. } => Some(&member.name),
        }
    }

    pub(crate) fn skip(&mut self, bytes: u64) {
        self.position += bytes;
    }

    /// Fills `buf` with the next bytes; the data must have that many left.
    pub(crate) fn fill(&mut self, mut buf: &mut [u8]) -> io::Result<()> {
        while !buf.is_empty() {
            let ready = self.position.checked_sub(self.first).and_then(|at| self.slab.get(at as usize..));
            let Some(ready) = ready.filter(|ready| !ready.is_empty()) else {
                self.gather()?;
                continue;
            };
            let len = ready.len().min(buf.len());
            buf[..len].copy_from_slice(&ready[..len]);
            self.position += len as u64;
            buf = &mut buf[len..];
        }
        Ok(())
    }

    fn gather(&mut self) -> io::Result<()> {
        if self.slab.capacity() == 0 {
            self.slab = room::zeros(self.slab_bytes)?;
        }
        let split = self.axes[self.split];
        // A row is one step along the divided axis, with all later axes. `row` is counted over the whole array.
        let row = self.position / split.here;
        let rows = (self.slab_bytes / split.here).min(split.len - row % split.len);
        let (mut begin, mut rest) = (0, row);
        for axis in self.axes[..=self.split].iter().rev() {
            begin += rest % axis.len * axis.file;
            rest /= axis.len;
        }
        let mut slab = std::mem::take(&mut self.slab);
        slab.resize((rows * split.here) as usize, 0);
        let mut input = self.input();
        let (element, behind) = match &self.axes[self.split + 1..] {
            [behind @ .., element] => (element.len, behind),
            // The slab is a part of one element.
            [] => (rows, &[][..]),
        };
        let rows = if self.split + 1 == self.axes.len() { 1 } else { rows };
        for run in 0..behind.iter().map(|axis| axis.len).product() {
            // The first axis varies fastest, so that file offsets ascend.
            let (mut here, mut file, mut rest) = (0, begin, run);
            for axis in behind {
                let index = rest % axis.len;
                (here, file, rest) = (here + index * axis.here, file + index * axis.file, rest / axis.len);
            }
            for row in 0..rows {
                let at = (here + row * split.here) as usize;
                input.read(file + row * split.file, &mut slab[at..at + element as usize])?;
            }
        }
        (self.slab, self.first) = (slab, row * split.here);
        Ok(())
    }

    fn input(&self) -> Input {
        match &self.place {
            Place::Window(window) => Input { at: 0, stream: Stream::Window(BufReader::new(window.clone())) },
            Place::Member { file, member, offset } => {
                let stream = Stream::Member { stream: BufReader::new(member.stream(file)), header: *offset };
                Input { at: 0, stream }
            }
        }
    }
}

struct Input {
    at: u64,
    stream: Stream,
}

enum Stream {
    Window(BufReader<Window>),
    Member { stream: BufReader<MemberStream>, header: u64 },
}

impl Input {
    /// Fills `buf` from an offset at or after the end of the previous read.
    fn read(&mut self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Window(window) => {
                if offset != self.at {
                    window.seek_relative((offset - self.at) as i64)?;
                }
                window.read_exact(buf).map_err(shrunk)?;
            }
            Stream::Member { stream, header } => {
                let mut gap = std::mem::take(header) + offset - self.at;
                while gap > 0 {
                    let passed = gap.min(stream.fill_buf()?.len() as u64);
                    if passed == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    stream.consume(passed as usize);
                    gap -= passed;
                }
                stream.read_exact(buf)?;
            }
        }
        self.at = offset + buf.len() as u64;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies `data` (Fortran order) into C order, one index at a time.
    fn by_index(shape: &[u64], element: usize, data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for flat in 0..shape.iter().product::<u64>() {
            let (mut at, mut rest, mut step) = (0, flat, shape.iter().product::<u64>());
            for (axis, len) in shape.iter().enumerate() {
                step /= len;
                at += rest / step * shape[..axis].iter().product::<u64>();
                rest %= step;
            }
            bytes.extend_from_slice(&data[at as usize * element..][..element]);
        }
        bytes
    }

    #[test]
    fn every_slab_gives_the_same() {
        let shapes: [&[u64]; 7] = [&[2, 3], &[5, 1, 4], &[3, 2, 2, 5], &[1, 7, 1, 3], &[40, 2], &[2, 40], &[9]];
        for (shape, element) in shapes.iter().flat_map(|shape| [(shape, 1), (shape, 2), (shape, 12)]) {
            let len = shape.iter().product::<u64>() * element;
            let data: Vec<u8> = (0..len).map(|i| (i * 7 % 251) as u8).collect();
            let mut file = tempfile::tempfile().unwrap();
            io::Write::write_all(&mut file, &[&b"head"[..], &data].concat()).unwrap();
            let file = Arc::new(file);
            let expected = by_index(shape, element as usize, &data);
            for slab in 1..=len + 1 {
                let place = Place::Window(Window::new(file.clone(), 4, 4 + len));
                let mut opened = FortranData::new(place, shape, element, slab);
                let mut found = vec![0; len as usize];
                found.chunks_mut(5).for_each(|part| opened.fill(part).unwrap());
                assert_eq!(found, expected, "{shape:?} {element} {slab}");
                assert!(opened.slab.capacity() as u64 <= slab, "{shape:?} {slab}");
                let place = Place::Window(Window::new(file.clone(), 4, 4 + len));
                let mut opened = FortranData::new(place, shape, element, slab);
                opened.skip(len / 2);
                let mut found = [0];
                opened.fill(&mut found).unwrap();
                assert_eq!(found[0], expected[len as usize / 2]);
            }
        }
    }
}
