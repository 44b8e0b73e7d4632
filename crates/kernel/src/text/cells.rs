//! Conversion between cells of text and elements in buffers of tensors.

use super::{Parsed, TextCaster, TextError};
use crate::{CastOptions, Caster, Elements, ElementsMut, PlanError};
use std::borrow::Cow;
use truecast_core::{CastSpec, DType, Layout};

/// Returns whether exactly one side of the conversion is text.
#[must_use]
pub fn is_text(spec: &CastSpec) -> bool {
    (spec.src == DType::String) != (spec.dst == DType::String)
}

/// Planned conversion between cells of text and elements.
#[derive(Debug)]
pub struct CellCaster {
    pub(super) caster: TextCaster,
    /// Copy of narrow elements between [`Layout::Packed`] and [`Layout::Bytes`].
    pub(super) relayout: Option<Caster>,
}

impl CellCaster {
    /// Plans a conversion; exactly one side must be text.
    ///
    /// # Errors
    /// [`PlanError::Unsupported`] for other pairs.
    pub fn new(spec: &CastSpec, exec: &CastOptions) -> Result<CellCaster, PlanError> {
        let CastSpec { src, dst, .. } = *spec;
        let caster = TextCaster::new(spec).map_err(|_| PlanError::Unsupported { src, dst })?;
        let other = if spec.src == DType::String { spec.dst } else { spec.src };
        let is_narrow = other.storage_bits().is_some_and(|bits| bits < 8);
        let relayout =
            is_narrow.then(|| Caster::new(&CastSpec::copy(other), exec).expect("a type is copied to itself"));
        Ok(CellCaster { caster, relayout })
    }

    /// Converts without counting.
    ///
    /// # Errors
    /// [`TextError`] if a text is not a number, a text does not fit its cell, or neither side has cells.
    pub fn cast(&self, src: Elements<'_>, dst: ElementsMut<'_>) -> Result<(), TextError> {
        match (src.layout(), dst.layout()) {
            (Layout::Utf32 { width }, _) => self.parse(src.bytes(), width, dst, |_| ()),
            (_, Layout::Utf32 { width }) => self.caster.print_cells(&self.loose(src), dst.into_bytes(), width),
            _ => Err(TextError::Length { elements: 0 }),
        }
    }

    pub(super) fn parse(
        &self,
        cells: &[u8],
        width: u32,
        dst: ElementsMut<'_>,
        see: impl FnMut(Parsed),
    ) -> Result<(), TextError> {
        let (dtype, layout, len) = (dst.dtype(), dst.layout(), dst.len());
        let Some(relayout) = self.relayout.as_ref().filter(|_| layout == Layout::Packed) else {
            return self.caster.parse_cells(cells, width, dst.into_bytes(), see);
        };
        let mut bytes = vec![0; len];
        self.caster.parse_cells(cells, width, &mut bytes, see)?;
        let codes = Elements::with_layout(dtype, Layout::Bytes, len, &bytes[..]).expect("one byte an element");
        relayout.cast(codes, dst).expect("as many elements on both sides");
        Ok(())
    }

    /// Elements in [`Layout::Bytes`].
    pub(super) fn loose<'a>(&self, src: Elements<'a>) -> Cow<'a, [u8]> {
        let Some(relayout) = self.relayout.as_ref().filter(|_| src.layout() == Layout::Packed) else {
            return Cow::Borrowed(src.bytes());
        };
        let mut bytes = vec![0; src.len()];
        let dst = ElementsMut::with_layout(src.dtype(), Layout::Bytes, src.len(), &mut bytes[..]);
        relayout.cast(src, dst.expect("one byte an element")).expect("as many elements on both sides");
        Cow::Owned(bytes)
    }
}
