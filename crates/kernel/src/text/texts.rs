//! Many texts in one buffer.

/// Texts of any length and content in one buffer.
///
/// # Examples
/// ```
/// use truecast_kernel::text::Texts;
/// let texts: Texts = ["1.5", "", "nan"].into_iter().collect();
/// assert_eq!((texts.len(), texts.get(2)), (3, Some(&b"nan"[..])));
/// assert_eq!(texts.longest(), 3);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Texts {
    /// Number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there are no texts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns a text; `None` if `index` is out of bounds.
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&[u8]> {
        let end = *self.ends.get(index)?;
        let begin = if index == 0 { 0 } else { self.ends[index - 1] };
        Some(&self.bytes[begin..end])
    }

    /// Returns all texts, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.bytes[begin..*end])
    }

    /// Appends a text.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.ends.push(self.bytes.len());
    }

    /// Appends the bytes from `write` as one text, or nothing if `write` fails.
    #[inline]
    pub(crate) fn push_with<E>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let begin = self.bytes.len();
        match write(&mut self.bytes) {
            Ok(()) => self.ends.push(self.bytes.len()),
            Err(error) => {
                self.bytes.truncate(begin);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Removes all texts, but keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Returns the number of bytes in all texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the number of bytes in the longest text; 0 without texts.
    pub fn longest(&self) -> usize {
        self.iter().map(<[u8]>::len).max().unwrap_or(0)
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for Texts {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Texts {
        let mut texts = Texts::default();
        all.into_iter().for_each(|text| texts.push(text.as_ref()));
        texts
    }
}
