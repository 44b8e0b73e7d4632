//! Visible names at a statement, and their values.

use std::collections::HashMap;
use std::sync::Arc;

use truecast_core::spec::tile::TileType;

use crate::tile::error::{Cause, Diagnostic, Place, shown};
use crate::tile::module::{Value, ValueId};

#[derive(Default)]
pub(super) struct Scope<'a> {
    pub(super) values: Vec<Value>,
    names: HashMap<&'a str, Binding>,
    /// Names that this region has bound. Each has the binding that is restored after the region.
    shadowed: Vec<(&'a str, Option<Binding>)>,
    regions: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Binding {
    id: ValueId,
    /// Number of values `%name#0`, `%name#1`, .., which share one `ValueId`.
    count: u64,
    /// Depth of the region that defines the name; `None` if the name was only mentioned.
    defined_in: Option<usize>,
}

impl<'a> Scope<'a> {
    fn value(&mut self, name: &str, tile: Option<Arc<TileType>>) -> ValueId {
        self.values.push(Value { name: Some(name.into()), tile });
        ValueId(self.values.len() as u32 - 1)
    }

    fn bind(&mut self, name: &'a str, binding: Binding) {
        let before = self.names.insert(name, binding);
        self.shadowed.push((name, before));
    }

    /// Registers a name without a definition. Does nothing if the name is visible.
    pub fn mention(&mut self, name: &'a str) {
        if !self.names.contains_key(name) {
            let id = self.value(name, None);
            self.bind(name, Binding { id, count: 1, defined_in: None });
        }
    }

    pub fn enter(&mut self) {
        self.regions.push(self.shadowed.len());
    }

    pub fn leave(&mut self) {
        let begin = self.regions.pop().expect("a region was entered");
        for (name, before) in self.shadowed.drain(begin..).rev() {
            match before {
                Some(binding) => self.names.insert(name, binding),
                None => self.names.remove(name),
            };
        }
    }

    pub(super) fn find(&self, name: &str, index: u64) -> Option<ValueId> {
        self.names.get(name).filter(|binding| index < binding.count).map(|binding| binding.id)
    }

    pub(super) fn depth(&self) -> usize {
        self.regions.len()
    }

    pub(super) fn define(
        &mut self,
        name: &'a str,
        count: u64,
        place: Place,
        tile: Option<Arc<TileType>>,
    ) -> Result<ValueId, Diagnostic> {
        let depth = self.regions.len();
        if self.names.get(name).is_some_and(|b| b.defined_in == Some(depth)) {
            let (expected, found) = ("a new name".into(), format!("%{} again", shown(name)));
            return Err(Diagnostic::new(place, Cause::Syntax { expected, found }));
        }
        let id = match count {
            1 => self.value(name, tile),
            _ => self.value(&format!("{}:{count}", shown(name)), None),
        };
        self.bind(name, Binding { id, count, defined_in: Some(depth) });
        Ok(id)
    }
}
