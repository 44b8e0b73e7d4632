//! Parses modules, entries and statements (§9.3). An unknown or newer operation or attribute gives a finding; the
//! operation becomes opaque.

use truecast_core::spec::tile::{Op, Release};

use super::conversion::Names;
use super::lexer::{Lexer, Token, unescaped};
use super::scope::Scope;
use super::tokens::Parser;
use crate::tile::error::{Cause, Diagnostic, Place, shown};
use crate::tile::module::{Function, Module, Operation, PackKind, Statement, ValueId};
use crate::tile::names::{self, is_operation, operation_name};

/// Limit on nested regions. Real kernels nest a few.
const MAX_DEPTH: usize = 64;

/// Parses the text of a module as version `version`.
///
/// Cost: memory proportional to the length of the text.
///
/// # Errors
/// The first invalid syntax (T015), type (T014) or literal (T016). A text without operations, or with an operation of
/// another dialect in place of an entry, is invalid syntax.
pub fn parse(text: &str, version: Release) -> Result<Module, Diagnostic> {
    let mut parser = Parser::new(Lexer::new(text), Module::new(version));
    parser.file()?;
    Ok(parser.module)
}

impl<'a> Parser<'a> {
    pub(super) fn file(&mut self) -> Result<(), Diagnostic> {
        const EXPECTED: &str = "\"entry\", \"module\" or another operation of Tile IR";
        let (mut modules, mut is_empty) = (0, true);
        loop {
            let at = self.peek()?;
            match at.token {
                Token::End if is_empty => return Err(self.unexpected(EXPECTED, &at)),
                Token::End if modules == 0 => break,
                Token::End => return Err(self.unexpected("\"}\"", &at)),
                Token::Sign('}') if modules > 0 => {
                    self.advance()?;
                    self.location()?;
                    modules -= 1;
                }
                Token::Word("module" | "cuda_tile.module" | "builtin.module") => {
                    self.advance()?;
                    if let Token::Symbol(_) = self.peek()?.token {
                        self.advance()?;
                    }
                    if self.accept_word("attributes")? {
                        self.skip_dictionary()?;
                    }
                    self.expect('{')?;
                    modules += 1;
                }
                Token::Word("entry" | "cuda_tile.entry") => self.entry()?,
                Token::Word(word) if is_operation(word) => self.outside_entries()?,
                Token::Value(_) => self.outside_entries()?,
                Token::Word(word) => {
                    let found = format!("{}{}", at.token, did_you_mean(word));
                    return Err(Diagnostic::new(at.place, Cause::Syntax { expected: EXPECTED.into(), found }));
                }
                _ => return Err(self.unexpected(EXPECTED, &at)),
            }
            is_empty = false;
        }
        if !self.module.functions.iter().any(|function| function.is_entry) {
            self.module.warn(Diagnostic::new(Place::Text { line: 1, column: 1 }, Cause::NoEntry));
        }
        Ok(())
    }

    /// Reports an unknown or newer operation as a finding, and an operation of test builds as a warning.
    fn known(&mut self, name: &str, place: Place) {
        match names::since(name) {
            Some(since) => self.gate(format!("operation {name}"), since, place),
            None if names::is_unreleased(name) => {
                let why = format!("operation {} is not in any release; only its contents are read", shown(name));
                self.module.warn(Diagnostic::new(place, Cause::Opcode { why }));
            }
            None => {
                let why = format!("operation \"{}\" is not known in Tile IR{}", shown(name), did_you_mean(name));
                self.module.find(Diagnostic::new(place, Cause::Opcode { why }));
            }
        }
    }

    /// Parses another operation than an entry, for the conversions in its regions.
    fn outside_entries(&mut self) -> Result<(), Diagnostic> {
        let mut scope = Scope::default();
        let statement = self.statement(&mut scope)?;
        let name = match &statement.operation {
            Operation::Opaque { name, .. } => name.clone(),
            _ => "".into(),
        };
        let (place, values, body) = (statement.place, scope.values, vec![statement]);
        self.module.functions.push(Function { name, is_entry: false, place, arguments: Vec::new(), values, body });
        Ok(())
    }

    fn entry(&mut self) -> Result<(), Diagnostic> {
        let place = self.advance()?.place;
        let at = self.advance()?;
        let Token::Symbol(name) = at.token else { return Err(self.unexpected("the name of the entry, as @name", &at)) };
        let name = &*unescaped(name);
        let mut scope = Scope::default();
        let mut arguments = Vec::new();
        self.expect('(')?;
        while !self.accept(')')? {
            if !arguments.is_empty() {
                self.expect(',')?;
            }
            let argument = self.argument(name, arguments.len(), &mut scope)?;
            arguments.push(argument);
        }
        if self.accept_word("optimization_hints")? {
            self.expect('=')?;
            self.skip_balanced('<')?;
        }
        if self.accept_word("attributes")? {
            self.skip_dictionary()?;
        }
        self.expect('{')?;
        let body = self.statements(&mut scope)?;
        self.expect('}')?;
        self.location()?;
        if !matches!(body.last(), Some(Statement { operation: Operation::Return { .. }, .. })) {
            self.module.warn(Diagnostic::new(place, Cause::Terminator { entry: shown(name) }));
        }
        let values = scope.values;
        self.module.functions.push(Function { name: name.into(), is_entry: true, place, arguments, values, body });
        Ok(())
    }

    fn argument(&mut self, entry: &str, index: usize, scope: &mut Scope<'a>) -> Result<ValueId, Diagnostic> {
        let at = self.advance()?;
        let Token::Value(name) = at.token else { return Err(self.unexpected("an argument, as %name", &at)) };
        self.expect(':')?;
        let tile = if self.tile_begins()? {
            Some(self.tile()?)
        } else {
            let place = self.peek()?.place;
            self.skip_type()?;
            let why = format!("argument {index} is not a tile; entry arguments must be rank-0 tiles");
            self.module.find(Diagnostic::new(place, Cause::Signature { entry: shown(entry), why }));
            None
        };
        self.skip_dictionary()?;
        self.location()?;
        scope.define(name, 1, at.place, tile)
    }

    /// Parses statements up to a closing brace, which is not taken.
    pub(super) fn statements(&mut self, scope: &mut Scope<'a>) -> Result<Vec<Statement>, Diagnostic> {
        let mut statements = Vec::new();
        loop {
            let at = self.peek()?;
            match at.token {
                Token::Sign('}') => return Ok(statements),
                Token::Sign('^') => self.block_label(scope)?,
                _ => statements.push(self.statement(scope)?),
            }
        }
    }

    /// Parses `^name(%argument: type, ..):`.
    fn block_label(&mut self, scope: &mut Scope<'a>) -> Result<(), Diagnostic> {
        self.expect('^')?;
        self.word("the name of a block")?;
        if self.accept('(')? {
            while !self.accept(')')? {
                let at = self.advance()?;
                match at.token {
                    Token::Value(name) => scope.mention(name),
                    Token::Sign('}') | Token::End => return Err(self.unexpected("\")\"", &at)),
                    _ => {}
                }
            }
        }
        self.expect(':')
    }

    fn statement(&mut self, scope: &mut Scope<'a>) -> Result<Statement, Diagnostic> {
        if scope.depth() > MAX_DEPTH {
            let at = self.peek()?;
            return Err(self.unexpected(&format!("at most {MAX_DEPTH} nested regions"), &at));
        }
        self.location = None;
        let names = self.result_names()?;
        let (word, place) = self.word("an operation")?;
        let name = operation_name(word);
        self.known(name, place);
        let (operation, tile) = match (Op::of_name(name), name) {
            (Some(op), _) => self.conversion(op, &names, scope)?,
            (None, "constant") => self.constant()?,
            (None, "pack") => self.pack(PackKind::Pack, scope)?,
            (None, "unpack") => self.pack(PackKind::Unpack, scope)?,
            (None, "return") => (self.returned(scope)?, None),
            (None, _) => (Operation::Opaque { name: name.into(), regions: self.opaque(scope)? }, None),
        };
        let gives = match &operation {
            Operation::Return { .. } => Some(0),
            Operation::Opaque { .. } => None,
            _ => Some(1),
        };
        if gives.is_some_and(|n| names.iter().map(|name| name.1).sum::<u64>() != n || names.len() as u64 != n) {
            let why = if gives == Some(0) { "no result" } else { "one result, as %name =" };
            let (expected, found) = (format!("{why} before {name}"), format!("{} names", names.len()));
            return Err(Diagnostic::new(place, Cause::Syntax { expected, found }));
        }
        let defined = names.into_iter().map(|(name, count, at)| scope.define(name, count, at, tile.clone()));
        let results = defined.collect::<Result<_, _>>()?;
        Ok(Statement { place, location: self.location.take(), results, operation })
    }

    /// Parses `%a, %b:2 =`.
    fn result_names(&mut self) -> Result<Names<'a>, Diagnostic> {
        let mut names = Vec::new();
        while let Token::Value(name) = self.peek()?.token {
            let place = self.advance()?.place;
            let count = if self.accept(':')? { self.number("the number of results")? } else { 1 };
            names.push((name, count, place));
            if self.accept('=')? {
                return Ok(names);
            }
            self.expect(',')?;
        }
        if names.is_empty() {
            Ok(names)
        } else {
            let at = self.peek()?;
            Err(self.unexpected("a result or \"=\"", &at))
        }
    }
}

/// End of a message about an unknown name: a suggestion, or nothing.
fn did_you_mean(name: &str) -> String {
    names::nearest(operation_name(name)).map_or(String::new(), |meant| format!("; did you mean \"{meant}\"?"))
}
