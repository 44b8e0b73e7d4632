//! Elements as text and back.
//!
//! This module is tested against the definition, `truecast_core::text`, bit for bit and byte for byte. The shortest
//! digits of f32 and f64 come from a library. [`texts`] holds many texts; [`utf32`] has the cells of NumPy's
//! fixed-width text.
//!
//! # Examples
//! ```
//! use truecast_core::{DType, spec::onnx::Cast};
//! use truecast_kernel::text::{TextCaster, Texts};
//! let parser = TextCaster::new(&Cast::to(DType::F16).resolve(DType::String)?)?;
//! let mut codes = [0; 4];
//! parser.parse(["0.1", "65519.9999999999999999999"], &mut codes)?;
//! assert_eq!(codes, [0x66, 0x2e, 0xff, 0x7b]); // rounded once: not 0x7c00, Inf
//!
//! let printer = TextCaster::new(&Cast::to(DType::String).resolve(DType::F16)?)?;
//! let mut texts = Texts::default();
//! printer.print(&codes, &mut texts)?;
//! assert_eq!(texts.iter().collect::<Vec<_>>(), [&b"0.1"[..], b"65500.0"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod cells;
mod counted;
mod error;
mod print;
pub mod texts;
pub mod utf32;

pub use cells::{CellCaster, is_text};
pub use error::TextError;
pub use texts::Texts;

use print::Printer;
use truecast_core::exact::{Encoded, encode};
use truecast_core::text::{encode_number, read};
use truecast_core::{CastSpec, DType, Exact, Kind, Layout};

/// Planned conversion from or to text; immutable, for any number of threads.
#[derive(Debug)]
pub struct TextCaster {
    spec: CastSpec,
    /// Bytes of an element on the side that is not text.
    width: usize,
    printer: Option<Printer>,
}

/// Result of reading a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// Value of the text.
    pub value: Exact,
    /// Code in the destination type, and the condition of the value.
    pub encoded: Encoded,
}

impl TextCaster {
    /// Plans a conversion; exactly one side must be text.
    ///
    /// # Errors
    /// [`TextError::Unsupported`] for other pairs: [`Caster`](crate::Caster) converts numbers, and text to text is a
    /// copy.
    pub fn new(spec: &CastSpec) -> Result<TextCaster, TextError> {
        let CastSpec { src, dst, .. } = *spec;
        let other = match (src, dst) {
            (DType::String, other) | (other, DType::String) if other.is_numeric() => other,
            _ => return Err(TextError::Unsupported { src, dst }),
        };
        let width = other.bits_in(Layout::Bytes).map_or(0, |bits| bits as usize / 8);
        let printer = (dst == DType::String).then(|| Printer::new(spec));
        Ok(TextCaster { spec: *spec, width, printer })
    }

    /// Returns the cast.
    #[must_use]
    pub fn spec(&self) -> &CastSpec {
        &self.spec
    }

    /// Converts texts to elements of [`Layout::Bytes`], little-endian.
    ///
    /// Shapes: `dst` has as many elements as there are texts. Result: formally equivalent to mapping
    /// [`truecast_core::text::parse_one`] over the texts. Cost: linear in the bytes of text.
    ///
    /// # Errors
    /// [`TextError`] at the first text that is not a number or that an `error` policy refuses; [`TextError::Length`].
    /// The content of `dst` is then unspecified.
    ///
    /// # Panics
    /// If the destination of this caster is text.
    pub fn parse<T: AsRef<[u8]>>(&self, texts: impl IntoIterator<Item = T>, dst: &mut [u8]) -> Result<(), TextError> {
        self.parse_seen(texts, dst, |_| ())
    }

    /// [`parse`](TextCaster::parse) with a call of `see` for each element in order.
    ///
    /// # Errors
    /// The errors of [`parse`](TextCaster::parse).
    ///
    /// # Panics
    /// If the destination of this caster is text.
    pub fn parse_seen<T: AsRef<[u8]>>(
        &self,
        texts: impl IntoIterator<Item = T>,
        dst: &mut [u8],
        mut see: impl FnMut(Parsed),
    ) -> Result<(), TextError> {
        assert!(self.printer.is_none(), "this caster prints");
        let (mut texts, mut index) = (texts.into_iter(), 0);
        let mut rooms = dst.chunks_exact_mut(self.width);
        let room = rooms.len();
        // `zip` takes the buffer first, so a text is only taken if its element has space.
        for (element, text) in (&mut rooms).zip(&mut texts) {
            let parsed = self.read(index, text.as_ref())?;
            let code = parsed.encoded.code.unwrap_or(0);
            let storage = self.spec.dst.storage_of_code(code).to_le_bytes();
            element.copy_from_slice(&storage[..self.width]);
            see(parsed);
            index += 1;
        }
        if index == room && texts.next().is_none() && rooms.into_remainder().is_empty() {
            Ok(())
        } else {
            Err(TextError::Length { elements: room })
        }
    }

    fn read(&self, index: usize, text: &[u8]) -> Result<Parsed, TextError> {
        let CastSpec { dst, policy, .. } = &self.spec;
        let number = read(*dst, text).map_err(|why| TextError::malformed(index, text, why))?;
        let value = number.to_exact();
        let encoded = match dst.kind() {
            // Integers need every digit before the point.
            Kind::Int(_) => encode_number(*dst, policy, &number),
            _ => encode(*dst, policy, value),
        };
        match encoded {
            Encoded { code: None, condition: Some(condition) } => Err(TextError::refused(index, text, condition)),
            _ => Ok(Parsed { value, encoded }),
        }
    }

    /// Appends the texts of elements in [`Layout::Bytes`], little-endian.
    ///
    /// Result: formally equivalent to mapping [`truecast_core::text::print_one`] over the elements.
    ///
    /// # Errors
    /// [`TextError::Unprintable`] for an element that an `error` policy refuses; [`TextError::Length`] if `src` is not
    /// a whole number of elements.
    ///
    /// # Panics
    /// If the source of this caster is text.
    pub fn print(&self, src: &[u8], texts: &mut Texts) -> Result<(), TextError> {
        let printer = self.printer.as_ref().expect("this caster parses");
        let elements = src.chunks_exact(self.width);
        if !elements.remainder().is_empty() {
            return Err(TextError::Length { elements: elements.len() });
        }
        let mut storage = [0; 8];
        for (index, element) in elements.enumerate() {
            storage[..self.width].copy_from_slice(element);
            let printed = texts.push_with(|text| printer.print(&self.spec, u64::from_le_bytes(storage), text));
            printed.map_err(|condition| TextError::Unprintable { index, condition })?;
        }
        Ok(())
    }
}
