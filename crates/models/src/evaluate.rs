//! Evaluating a model of any format: its steps in order, each value held from its making to its last use.
//!
//! A format says what its steps are ([`Program`]); what is alive, and what a standard does not define, is the same for all.

use std::fmt;
use std::sync::Arc;

use truecast_core::spec::tosa::Requirement;

/// Values that a conversion met and that its standard leaves open: each has the documented result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenResults {
    /// How errors name the conversion.
    pub conversion: String,
    /// Elements that it converted.
    pub elements: u64,
    /// Those that are left open.
    pub undefined: u64,
    /// Where the standard is cited.
    pub clause: &'static str,
}

/// A result that a standard does not define, and that ends an evaluation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndefinedResult {
    /// The operation.
    pub place: String,
    /// The first element, if it is one.
    pub index: Option<u64>,
    /// Why.
    pub reason: Reason,
}

/// Why a result is not defined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// A clause leaves this element open (Tile IR, evaluated strictly).
    Clause(&'static str),
    /// A requirement is not met, so that the whole graph has no result (TOSA).
    Requirement(Requirement),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Clause(clause) => f.write_str(clause),
            Reason::Requirement(requirement) => write!(f, "unpredictable: {requirement}"),
        }
    }
}

impl std::error::Error for UndefinedResult {}

impl fmt::Display for UndefinedResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UndefinedResult { place, index, reason } = self;
        match (reason, index) {
            (Reason::Clause(_), Some(index)) => write!(f, "{place}: element {index} is undefined: {reason}"),
            (Reason::Requirement(_), Some(index)) => write!(f, "{place}: {reason}, first at element {index}"),
            (_, None) => write!(f, "{place}: {reason}"),
        }
    }
}

/// A model as the evaluator sees it: numbered values, and numbered steps that make some of them from others.
pub(crate) trait Program {
    /// What flows.
    type Value;
    /// What ends an evaluation.
    type Error;

    /// How many values there are.
    fn values(&self) -> usize;

    /// How many steps there are.
    fn steps(&self) -> usize;

    /// The values that a step takes.
    fn operands(&self, step: usize) -> Vec<usize>;

    /// The values that a step gives.
    fn results(&self, step: usize) -> Vec<usize>;

    /// The values that are delivered before a step; the number of steps stands for the end.
    fn delivered(&self, step: usize) -> Vec<usize>;

    /// Every step is done, also one whose results nobody uses.
    fn does_every_step(&self) -> bool {
        false
    }

    /// A value that no step has given; `None` if it is unknown.
    fn load(&mut self, value: usize) -> Result<Option<Arc<Self::Value>>, Self::Error>;

    /// What a step makes of its operands; `None` for a result that is unknown.
    fn apply(&mut self, step: usize, operands: &[Given<Self::Value>]) -> Result<Vec<Given<Self::Value>>, Self::Error>;

    /// Takes a value that is delivered before a step.
    fn deliver(&mut self, step: usize, value: usize, given: Given<Self::Value>) -> Result<(), Self::Error>;

    /// Sees that a value is held that a step gave, and refuses it if the values take too much memory.
    fn hold(&mut self, _step: usize, _value: usize, _given: &Self::Value) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Sees that a value is no longer held.
    fn release(&mut self, _given: &Self::Value) {}
}

/// A value if it is known.
pub(crate) type Given<V> = Option<Arc<V>>;

/// Evaluates a program. Returns how often each value is used.
///
/// # Errors
/// Whatever the program meets.
pub(crate) fn run<P: Program>(program: &mut P) -> Result<Vec<usize>, P::Error> {
    let uses = uses(program);
    let mut values = Values { held: (0..program.values()).map(|_| None).collect(), uses: uses.clone() };
    for step in 0..=program.steps() {
        for value in program.delivered(step) {
            let given = values.take(program, value)?;
            program.deliver(step, value, given)?;
        }
        if step == program.steps() {
            break;
        }
        let results = program.results(step);
        if !program.does_every_step() && results.iter().all(|&result| uses[result] == 0) {
            continue;
        }
        let operands = program.operands(step).into_iter().map(|operand| values.take(program, operand));
        let operands = operands.collect::<Result<Vec<_>, _>>()?;
        let made = program.apply(step, &operands)?;
        for (result, made) in results.into_iter().zip(made) {
            if let Some(made) = made
                && values.uses[result] > 0
            {
                program.hold(step, result, &made)?;
                values.held[result] = Some(made);
            }
        }
    }
    Ok(uses)
}

/// How often each value is used; what only a step uses that is not done is not used.
fn uses<P: Program>(program: &P) -> Vec<usize> {
    let mut uses = vec![0; program.values()];
    for step in (0..=program.steps()).rev() {
        if step < program.steps()
            && (program.does_every_step() || program.results(step).iter().any(|&result| uses[result] > 0))
        {
            program.operands(step).into_iter().for_each(|operand| uses[operand] += 1);
        }
        program.delivered(step).into_iter().for_each(|value| uses[value] += 1);
    }
    uses
}

/// The values that are alive.
struct Values<V> {
    held: Vec<Given<V>>,
    /// Uses that are still to come.
    uses: Vec<usize>,
}

impl<V> Values<V> {
    /// Uses a value once; after the last time nothing of it is left here.
    fn take<P: Program<Value = V>>(&mut self, program: &mut P, value: usize) -> Result<Given<V>, P::Error> {
        let given = match self.held[value].take() {
            Some(held) => Some(held),
            None => program.load(value)?,
        };
        self.uses[value] -= 1;
        match (&given, self.uses[value]) {
            (Some(given), 0) => program.release(given),
            (Some(_), _) => self.held[value] = given.clone(),
            (None, _) => {}
        }
        Ok(given)
    }
}
