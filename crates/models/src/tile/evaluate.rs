//! What every element of every conversion becomes (§6.1): in order, holding a value from its making to its last use.
//!
//! Values are codes, and for each element the reason why it is undefined, if it is: an operation on an undefined element
//! computes from the carried bits and stays undefined for the same reason. Values of other operations are unknown unless
//! the caller supplies them. The engine's kernels are not used: an element of a tile costs the price of the definition.

use std::collections::BTreeMap;

use truecast_core::spec::tile::{ElementType, Meaning, Options, Profile, TileType, meaning::REASONS};
use truecast_core::{DType, Outcome};

use crate::tile::codes::Codes;
use crate::tile::error::{Cause, Error};
use crate::tile::module::{Function, Operation, Statement, ValueId};
use crate::tile::pack;

/// How modules are evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Whose values.
    pub profile: Profile,
    /// The options of §2.3.
    pub options: Options,
    /// Bytes that live values may take.
    pub max_bytes: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { profile: Profile::default(), options: Options::default(), max_bytes: 1 << 30 }
    }
}

/// A value with what is known about its elements.
#[derive(Clone, Debug, PartialEq)]
pub struct Elements {
    /// The codes.
    pub codes: Codes,
    /// Why elements are undefined.
    pub undefined: Reasons,
}

/// Which elements are undefined, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reasons {
    /// All of them, or none.
    All(Option<&'static str>),
    /// One entry for each: 0, or one more than an index of [`REASONS`].
    Each(Vec<u8>),
}

impl Reasons {
    /// Why an element is undefined; `None` if it is not.
    pub fn of(&self, index: u64) -> Option<&'static str> {
        match self {
            Reasons::All(reason) => *reason,
            Reasons::Each(numbers) => match numbers[index as usize] {
                0 => None,
                n => Some(REASONS[n as usize - 1]),
            },
        }
    }
}

impl Elements {
    /// Elements that are all defined.
    pub fn defined(codes: Codes) -> Self {
        Self { codes, undefined: Reasons::All(None) }
    }

    fn held_bytes(&self) -> u64 {
        let reasons = match &self.undefined {
            Reasons::All(_) => 0,
            Reasons::Each(numbers) => numbers.len() as u64,
        };
        self.codes.held_bytes() + reasons
    }
}

/// One conversion that was evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Converted<'a> {
    /// The result, as it is written.
    pub name: String,
    /// The operation.
    pub op: &'static str,
    /// Its type.
    pub tile: &'a TileType,
    /// Its elements; `None` if the operand is unknown.
    pub elements: Option<&'a Elements>,
    /// Undefined elements by reason.
    pub undefined: BTreeMap<&'static str, u64>,
    /// Elements for which another source has another value, by behaviour.
    pub notes: BTreeMap<&'static str, u64>,
}

/// Why an evaluation stopped.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // The fields are what the messages say.
pub enum Stop {
    /// An operation is illegal or has no value.
    #[error(transparent)]
    Illegal(#[from] Error),
    /// `strict`, and an element is undefined.
    #[error("{place}: {value}: element {index} is undefined: {reason}")]
    Undefined { place: crate::tile::Place, value: String, index: u64, reason: &'static str },
    /// Live values take too much memory.
    #[error("{place}: {value}: values take more than {limit} bytes")]
    Memory { place: crate::tile::Place, value: String, limit: u64 },
    /// A value was supplied that the entry does not have.
    #[error("entry {entry} has no value {name}")]
    NoValue { entry: String, name: String },
    /// A value was supplied in another form than the entry declares.
    #[error("{name}: {len} elements of {found} where the entry has {declared}")]
    Supplied { name: String, len: u64, found: DType, declared: TileType },
}

/// Evaluates an entry.
///
/// `supplied` gives values by name, as `%x`; the value of an operation that is not understood may be supplied too.
/// `deliver` is given every conversion, in order, as soon as it is evaluated.
///
/// # Errors
/// [`Stop`], and whatever `deliver` returns.
pub fn evaluate<E: From<Stop>>(
    function: &Function,
    settings: &Settings,
    supplied: Vec<(String, Codes)>,
    deliver: impl FnMut(Converted<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let mut values = Values::new(function, settings);
    values.supply(supplied)?;
    values.count_uses(&function.body);
    Evaluation { function, settings, values, deliver }.statements(&function.body)
}

/// The values that are alive.
struct Values<'a> {
    function: &'a Function,
    held: Vec<Option<Elements>>,
    uses: Vec<u32>,
    bytes: u64,
    max_bytes: u64,
}

impl<'a> Values<'a> {
    fn new(function: &'a Function, settings: &Settings) -> Self {
        let n = function.values.len();
        Self { function, held: vec![None; n], uses: vec![0; n], bytes: 0, max_bytes: settings.max_bytes }
    }

    fn supply(&mut self, supplied: Vec<(String, Codes)>) -> Result<(), Stop> {
        for (name, codes) in supplied {
            let entry = &self.function.name;
            let known = self.function.value_of(&name);
            let id = known
                .map(|id| id.0 as usize)
                .ok_or_else(|| Stop::NoValue { entry: crate::tile::error::shown(entry), name: name.clone() })?;
            let declared = self.function.values[id].tile.as_deref();
            if let Some(declared) = declared
                && (declared.len() != codes.len() || declared.element.storage() != codes.dtype())
            {
                let (len, found) = (codes.len(), codes.dtype());
                return Err(Stop::Supplied { name, len, found, declared: declared.clone() });
            }
            self.held[id] = Some(Elements::defined(codes));
        }
        Ok(())
    }

    fn count_uses(&mut self, statements: &[Statement]) {
        for statement in statements {
            match &statement.operation {
                Operation::Convert { operand, .. } | Operation::Pack { operand, .. } => {
                    self.uses[operand.0 as usize] += 1;
                }
                Operation::Opaque { regions, .. } => regions.iter().for_each(|region| self.count_uses(region)),
                Operation::Constant { .. } | Operation::Return { .. } => {}
            }
        }
    }

    /// Uses a value once; after the last time nothing of it is left here.
    fn take(&mut self, id: ValueId) -> Option<Elements> {
        let index = id.0 as usize;
        self.uses[index] -= 1;
        match self.uses[index] {
            0 => {
                let elements = self.held[index].take()?;
                self.bytes -= elements.held_bytes().min(self.bytes);
                Some(elements)
            }
            _ => self.held[index].clone(),
        }
    }

    fn keep(&mut self, id: ValueId, elements: Elements, statement: &Statement) -> Result<(), Stop> {
        if self.uses[id.0 as usize] == 0 {
            return Ok(());
        }
        self.bytes += elements.held_bytes();
        if self.bytes > self.max_bytes {
            let value = self.function.name_of(id);
            return Err(Stop::Memory { place: statement.place, value, limit: self.max_bytes });
        }
        self.held[id.0 as usize] = Some(elements);
        Ok(())
    }
}

struct Evaluation<'a, D> {
    function: &'a Function,
    settings: &'a Settings,
    values: Values<'a>,
    deliver: D,
}

impl<E: From<Stop>, D: FnMut(Converted<'_>) -> Result<(), E>> Evaluation<'_, D> {
    fn statements(&mut self, statements: &[Statement]) -> Result<(), E> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), E> {
        match &statement.operation {
            Operation::Constant { codes, .. } => {
                let elements = Elements::defined((**codes).clone());
                Ok(self.values.keep(statement.results[0], elements, statement)?)
            }
            Operation::Convert { conversion, operand, from, to } => {
                let operand = self.operand(*operand, from);
                let (profile, options) = (self.settings.profile, &self.settings.options);
                let meaning = conversion.meaning(from.element, to.element, profile, options);
                let meaning = meaning.map_err(|violation| {
                    let value = self.function.name_of(statement.results[0]);
                    let (operand, result) = (from.clone(), to.clone());
                    let cause = Cause::Illegal { value, operand, result, violation };
                    Stop::Illegal(Error::of(statement, cause))
                })?;
                let mut notes = BTreeMap::new();
                let result = operand.map(|operand| convert(&meaning, &operand, to.element, &mut notes));
                self.finish(statement, conversion.op().name(), to, result, notes)
            }
            Operation::Pack { kind, operand, from, to } => {
                let operand = self.operand(*operand, from);
                let result = operand.and_then(|operand| reinterpret(&operand, to));
                self.finish(statement, kind.name(), to, result, BTreeMap::new())
            }
            Operation::Opaque { regions, .. } => regions.iter().try_for_each(|region| self.statements(region)),
            Operation::Return { .. } => Ok(()),
        }
    }

    /// A supplied value of unknown type may turn out not to be what its use says; it is as good as unknown then.
    fn operand(&mut self, id: ValueId, from: &TileType) -> Option<Elements> {
        let fits = |e: &Elements| e.codes.dtype() == from.element.storage() && e.codes.len() == from.len();
        self.values.take(id).filter(fits)
    }

    fn finish(
        &mut self,
        statement: &Statement,
        op: &'static str,
        tile: &TileType,
        elements: Option<Elements>,
        notes: BTreeMap<&'static str, u64>,
    ) -> Result<(), E> {
        let id = statement.results[0];
        let name = self.function.name_of(id);
        let undefined = elements.as_ref().map(tally).unwrap_or_default();
        if self.settings.options.strict
            && let Some(elements) = &elements
            && let Some((index, reason)) = (0..elements.codes.len()).find_map(|i| Some((i, elements.undefined.of(i)?)))
        {
            return Err(Stop::Undefined { place: statement.place, value: name, index, reason }.into());
        }
        (self.deliver)(Converted { name, op, tile, elements: elements.as_ref(), undefined, notes })?;
        match elements {
            Some(elements) => Ok(self.values.keep(id, elements, statement)?),
            None => Ok(()),
        }
    }
}

fn tally(elements: &Elements) -> BTreeMap<&'static str, u64> {
    let mut counts = BTreeMap::new();
    match &elements.undefined {
        Reasons::All(None) => {}
        Reasons::All(Some(reason)) => drop(counts.insert(*reason, elements.codes.len())),
        Reasons::Each(numbers) => {
            for &number in numbers.iter().filter(|n| **n != 0) {
                *counts.entry(REASONS[number as usize - 1]).or_insert(0) += 1;
            }
        }
    }
    counts
}

fn convert(
    meaning: &Meaning,
    operand: &Elements,
    to: ElementType,
    notes: &mut BTreeMap<&'static str, u64>,
) -> Elements {
    let dtype = to.storage();
    let len = operand.codes.len();
    let mut one = |code: u64, carried: Option<&'static str>, n: u64| {
        let element = meaning.element(code);
        if let (Some(note), None) = (element.note, carried) {
            *notes.entry(note).or_insert(0) += n;
        }
        match element.outcome {
            Outcome::Undefined { code, reason } => (code, carried.or(Some(reason))),
            outcome => (outcome.code().expect("no policy of Tile IR refuses a value"), carried),
        }
    };
    if let (Some(code), Reasons::All(carried)) = (operand.codes.as_splat(), &operand.undefined) {
        let (code, reason) = one(code, *carried, len);
        return Elements { codes: Codes::splat(dtype, len, code), undefined: Reasons::All(reason) };
    }
    let mut codes = Codes::empty(dtype);
    let mut numbers = Vec::new();
    for i in 0..len {
        let (code, reason) = one(operand.codes.get(i), operand.undefined.of(i), 1);
        codes.push(code);
        if let Some(reason) = reason {
            numbers.resize(i as usize, 0);
            let number = REASONS.iter().position(|r| *r == reason).expect("the list has every reason");
            numbers.push(number as u8 + 1);
        }
    }
    let undefined = match numbers.is_empty() {
        true => Reasons::All(None),
        false => {
            numbers.resize(len as usize, 0);
            Reasons::Each(numbers)
        }
    };
    Elements { codes, undefined }
}

/// An element of the result is undefined if any element of the operand that it takes bits from is.
fn reinterpret(operand: &Elements, to: &TileType) -> Option<Elements> {
    let codes = pack::evaluate(&operand.codes, to.element.storage())?;
    let undefined = match &operand.undefined {
        Reasons::All(reason) => Reasons::All(*reason),
        Reasons::Each(numbers) => {
            let (from, into) = (numbers.len() as u64, codes.len());
            let sources = |i: u64| i * from / into..=((i + 1) * from - 1) / into;
            let number = |i: u64| sources(i).map(|k| numbers[k as usize]).find(|n| *n != 0).unwrap_or(0);
            Reasons::Each((0..into).map(number).collect())
        }
    };
    Some(Elements { codes, undefined })
}
