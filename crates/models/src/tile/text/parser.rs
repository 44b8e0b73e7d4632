//! Statements of a module (§9.3). Operations and attributes that are unknown or too new are findings: reading goes on, and
//! the operation is kept opaque.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use truecast_core::spec::tile::types::Malformed;
use truecast_core::spec::tile::{
    Conversion, ElementType, IntegerOverflow, Number, Op, Release, RoundingMode, Signedness, TileType, Violation,
};

use super::lexer::{Lexeme, Lexer, Token};
use super::literal;
use crate::packer::Packer;
use crate::tensor::{Data, Tensor};
use crate::tile::error::{Cause, Diagnostic, Place, shown, shown_bare};
use crate::tile::module::{Function, Module, Operation, PackKind, Statement, Value, ValueId};
use crate::tile::names::{self, is_operation, operation_name};

/// Regions within regions; real kernels have a handful.
const MAX_DEPTH: usize = 64;
/// Dimensions of a tile.
const MAX_RANK: usize = 64;

/// Reads a module from text, taken to be of file version `version`.
///
/// Cost: memory in proportion to the text.
///
/// # Errors
/// The first place that is no syntax (T015), no type (T014) or no literal (T016). A text without an operation, or with one of
/// another dialect where a module has its entries, is no syntax.
pub fn parse(text: &str, version: Release) -> Result<Module, Diagnostic> {
    let module = Module { version, functions: Vec::new(), findings: Vec::new(), warnings: Vec::new() };
    let mut parser = Parser::new(Lexer::new(text), module);
    parser.file()?;
    Ok(parser.module)
}

pub(super) struct Parser<'a> {
    /// After the peeked token, if there is one.
    lexer: Lexer<'a>,
    /// The next token, and the lexer before it.
    peeked: Option<(Lexeme<'a>, Lexer<'a>)>,
    module: Module,
    /// What was reported to be newer than the file.
    too_new: HashSet<String>,
    /// The location that was read last, of the current statement.
    location: Option<Arc<str>>,
}

/// The names that are visible, and every value of a function.
#[derive(Default)]
pub(super) struct Scope<'a> {
    values: Vec<Value>,
    names: HashMap<&'a str, Binding>,
    /// What names meant outside of the current regions.
    shadowed: Vec<(&'a str, Option<Binding>)>,
    regions: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Binding {
    id: ValueId,
    /// How many values `%name#0`, `%name#1`, .. there are; they are not told apart.
    count: u64,
    /// By a statement, not by being mentioned.
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

    /// A name of which nothing else is known.
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
}

/// The results that a statement names: each with how many values it stands for.
type Names<'a> = Vec<(&'a str, u64, Place)>;

impl<'a> Parser<'a> {
    fn new(lexer: Lexer<'a>, module: Module) -> Self {
        Self { lexer, peeked: None, module, too_new: HashSet::new(), location: None }
    }

    // ---- tokens ----

    pub(super) fn peek(&mut self) -> Result<Lexeme<'a>, Diagnostic> {
        if let Some((lexeme, _)) = self.peeked {
            return Ok(lexeme);
        }
        let before = self.lexer;
        let lexeme = self.lexer.next()?;
        self.peeked = Some((lexeme, before));
        Ok(lexeme)
    }

    /// A lexer whose next token is the peeked one.
    pub(super) fn lexer_at_peeked(&self) -> Lexer<'a> {
        self.peeked.map_or(self.lexer, |(_, before)| before)
    }

    pub(super) fn advance(&mut self) -> Result<Lexeme<'a>, Diagnostic> {
        let lexeme = self.peek()?;
        self.peeked = None;
        Ok(lexeme)
    }

    pub(super) fn unexpected(&self, expected: &str, at: &Lexeme<'a>) -> Diagnostic {
        Diagnostic::new(at.place, Cause::Syntax { expected: expected.into(), found: at.token.to_string() })
    }

    /// Takes a sign if it is next.
    fn accept(&mut self, sign: char) -> Result<bool, Diagnostic> {
        let is_next = self.peek()?.token == Token::Sign(sign);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn accept_word(&mut self, word: &str) -> Result<bool, Diagnostic> {
        let is_next = self.peek()?.token == Token::Word(word);
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    pub(super) fn expect(&mut self, sign: char) -> Result<(), Diagnostic> {
        let at = self.advance()?;
        match at.token {
            Token::Sign(found) if found == sign => Ok(()),
            _ => Err(self.unexpected(&format!("\"{sign}\""), &at)),
        }
    }

    fn word(&mut self, expected: &str) -> Result<(&'a str, Place), Diagnostic> {
        let at = self.advance()?;
        match at.token {
            Token::Word(word) => Ok((word, at.place)),
            _ => Err(self.unexpected(expected, &at)),
        }
    }

    /// Skips `open .. close` with everything inside.
    fn skip_balanced(&mut self, open: char) -> Result<(), Diagnostic> {
        let mut closers = Vec::new();
        self.expect(open)?;
        let closer = |open| match open {
            '(' => ')',
            '[' => ']',
            '{' => '}',
            _ => '>',
        };
        closers.push(closer(open));
        while !closers.is_empty() {
            let at = self.advance()?;
            match at.token {
                Token::Sign(open @ ('(' | '[' | '{' | '<')) => closers.push(closer(open)),
                Token::Sign(found @ (')' | ']' | '}' | '>')) if closers.pop() != Some(found) => {
                    return Err(self.unexpected("balanced brackets", &at));
                }
                Token::End => return Err(self.unexpected("balanced brackets", &at)),
                _ => {}
            }
        }
        Ok(())
    }

    fn skip_dictionary(&mut self) -> Result<(), Diagnostic> {
        match self.peek()?.token {
            Token::Sign('{') => self.skip_balanced('{'),
            _ => Ok(()),
        }
    }

    /// `[loc]`, which belongs to the statement that is being read.
    fn location(&mut self) -> Result<(), Diagnostic> {
        if self.accept_word("loc")? {
            self.peek()?;
            let before = self.lexer_at_peeked();
            self.skip_balanced('(')?;
            self.location = Some(shown_bare(before.text_up_to(&self.lexer)).into());
        }
        Ok(())
    }

    // ---- modules and entries ----

    fn file(&mut self) -> Result<(), Diagnostic> {
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

    /// Operations that no release has are findings, or warnings if they are of the dialect's own builds.
    fn known(&mut self, name: &str, place: Place) {
        match names::since(name) {
            Some(since) => self.gate(format!("operation {name}"), since, place),
            None if names::is_unreleased(name) => {
                let why = format!("operation {} is in no release; only what is inside it is read", shown(name));
                self.module.warn(Diagnostic::new(place, Cause::Opcode { why }));
            }
            None => {
                let why = format!("operation \"{}\" is not known in Tile IR{}", shown(name), did_you_mean(name));
                self.module.find(Diagnostic::new(place, Cause::Opcode { why }));
            }
        }
    }

    /// Any other operation of a module: read for the conversions in its regions.
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
        let tile = match self.tile_begins()? {
            true => Some(self.tile()?),
            false => {
                let place = self.peek()?.place;
                self.skip_type()?;
                let why = format!("argument {index} is no tile; entry arguments must be rank-0 tiles");
                self.module.find(Diagnostic::new(place, Cause::Signature { entry: shown(entry), why }));
                None
            }
        };
        self.skip_dictionary()?;
        self.location()?;
        self.define(scope, name, 1, at.place, tile)
    }

    /// Any type, up to the comma or bracket after it.
    fn skip_type(&mut self) -> Result<(), Diagnostic> {
        loop {
            let at = self.peek()?;
            match at.token {
                Token::Sign(',' | ')' | '{' | '}') | Token::End | Token::Word("loc") => return Ok(()),
                Token::Sign(open @ ('<' | '(' | '[')) => self.skip_balanced(open)?,
                _ => {
                    self.advance()?;
                }
            }
        }
    }

    // ---- statements ----

    /// Statements up to a closing brace, which is not taken.
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

    /// `^name(%argument: type, ..):`
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
        if scope.regions.len() > MAX_DEPTH {
            let at = self.peek()?;
            return Err(self.unexpected(&format!("at most {MAX_DEPTH} regions within each other"), &at));
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
        let defined = names.into_iter().map(|(name, count, at)| self.define(scope, name, count, at, tile.clone()));
        let results = defined.collect::<Result<_, _>>()?;
        Ok(Statement { place, location: self.location.take(), results, operation })
    }

    /// `%a, %b:2 =`
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
        match names.is_empty() {
            true => Ok(names),
            false => {
                let at = self.peek()?;
                Err(self.unexpected("a result or \"=\"", &at))
            }
        }
    }

    fn number(&mut self, expected: &str) -> Result<u64, Diagnostic> {
        let at = self.advance()?;
        match at.token {
            Token::Word(word) if word.bytes().all(|b| b.is_ascii_digit()) => word.parse().ok(),
            _ => None,
        }
        .ok_or_else(|| self.unexpected(expected, &at))
    }

    fn define(
        &mut self,
        scope: &mut Scope<'a>,
        name: &'a str,
        count: u64,
        place: Place,
        tile: Option<Arc<TileType>>,
    ) -> Result<ValueId, Diagnostic> {
        let depth = scope.regions.len();
        if scope.names.get(name).is_some_and(|b| b.defined_in == Some(depth)) {
            let (expected, found) = ("a new name".into(), format!("%{} again", shown(name)));
            return Err(Diagnostic::new(place, Cause::Syntax { expected, found }));
        }
        let id = match count {
            1 => scope.value(name, tile),
            _ => scope.value(&format!("{}:{count}", shown(name)), None),
        };
        scope.bind(name, Binding { id, count, defined_in: Some(depth) });
        Ok(id)
    }

    fn operand(&mut self, scope: &Scope<'a>) -> Result<ValueId, Diagnostic> {
        let at = self.advance()?;
        let Token::Value(name) = at.token else { return Err(self.unexpected("an operand, as %name", &at)) };
        let index = if self.accept('#')? { self.number("the number of a result")? } else { 0 };
        match scope.names.get(name) {
            Some(binding) if index < binding.count => Ok(binding.id),
            _ => Err(self.unexpected("a value that was defined before", &at)),
        }
    }

    /// `[dict] : type -> type [loc]`
    fn signature(&mut self) -> Result<(Arc<TileType>, Arc<TileType>), Diagnostic> {
        self.skip_dictionary()?;
        self.expect(':')?;
        let from = self.tile()?;
        let at = self.advance()?;
        if at.token != Token::Arrow {
            return Err(self.unexpected("\"->\" after the operand type", &at));
        }
        let to = self.tile()?;
        self.location()?;
        Ok((from, to))
    }

    /// What stands in `keyword<word>`, if it is there.
    fn option(&mut self, keyword: &str) -> Result<Option<(&'a str, Place)>, Diagnostic> {
        if !self.accept_word(keyword)? {
            return Ok(None);
        }
        self.expect('<')?;
        let word = self.word("a name")?;
        self.expect('>')?;
        Ok(Some(word))
    }

    fn conversion(
        &mut self,
        op: Op,
        names: &Names<'a>,
        scope: &Scope<'a>,
    ) -> Result<(Operation, Option<Arc<TileType>>), Diagnostic> {
        let operand = self.operand(scope)?;
        let value = || names.first().map_or(op.to_string(), |n| format!("%{}", shown(n.0)));
        let mut is_known = true;
        let attribute = |place, violation| Diagnostic::new(place, Cause::Attribute { value: value(), violation });
        let mut signedness = Signedness::Signed;
        if op.has_signedness() {
            let at = self.peek()?;
            let word = if let Token::Word(word) = at.token { Some(word) } else { None };
            match word.and_then(Signedness::of_name) {
                Some(found) => {
                    signedness = found;
                    self.advance()?;
                }
                None => {
                    let unknown = word.filter(|w| !matches!(*w, "rounding" | "saturating"));
                    let found = unknown.map(|w| format!("\"{}\"", shown(w)));
                    if found.is_some() {
                        self.advance()?;
                    }
                    self.module.find(attribute(at.place, Violation::Signedness { op, found }));
                    is_known = false;
                }
            }
        }
        let mut conversion = op.with_defaults(signedness);
        if let Conversion::Trunci { overflow } = &mut conversion
            && let Some((word, place)) = self.option("overflow")?
        {
            match IntegerOverflow::of_name(word) {
                Some(found) => *overflow = found,
                None => {
                    let found = format!("\"{}\"", shown(word));
                    self.module.find(attribute(place, Violation::Overflow { found }));
                    is_known = false;
                }
            }
        }
        if let Conversion::Ftof { rounding } | Conversion::Itof { rounding, .. } | Conversion::Ftoi { rounding, .. } =
            &mut conversion
            && let Some((word, place)) = self.option("rounding")?
        {
            match RoundingMode::of_name(word) {
                Some(found) => {
                    *rounding = found;
                    self.gate(format!("rounding mode {found}"), found.since(), place);
                }
                None => {
                    let found = format!("\"{}\"", shown(word));
                    self.module.find(attribute(place, Violation::RoundingName { op, found }));
                    is_known = false;
                }
            }
        }
        if let Conversion::Ftoi { saturating, .. } = &mut conversion {
            let place = self.peek()?.place;
            *saturating = self.accept_word("saturating")?;
            if *saturating {
                self.gate("saturating".into(), Release::V13_4, place);
            }
        }
        let (from, to) = self.signature()?;
        let operation = match is_known {
            true => Operation::Convert { conversion, operand, from, to: to.clone() },
            false => Operation::Opaque { name: op.name().into(), regions: Vec::new() },
        };
        Ok((operation, Some(to)))
    }

    fn pack(&mut self, kind: PackKind, scope: &Scope<'a>) -> Result<(Operation, Option<Arc<TileType>>), Diagnostic> {
        let operand = self.operand(scope)?;
        let (from, to) = self.signature()?;
        Ok((Operation::Pack { kind, operand, from, to: to.clone() }, Some(to)))
    }

    fn returned(&mut self, scope: &Scope<'a>) -> Result<Operation, Diagnostic> {
        let mut operands = Vec::new();
        while let Token::Value(_) = self.peek()?.token {
            operands.push(self.operand(scope)?);
            if !self.accept(',')? {
                break;
            }
        }
        if self.accept(':')? {
            loop {
                self.skip_type()?;
                if !self.accept(',')? {
                    break;
                }
            }
        }
        self.location()?;
        Ok(Operation::Return { operands })
    }

    // ---- constants ----

    fn constant(&mut self) -> Result<(Operation, Option<Arc<TileType>>), Diagnostic> {
        self.skip_dictionary()?;
        let dense = self.accept_word("dense")?;
        self.expect('<')?;
        let element = match dense {
            true => None,
            false => {
                let word = self.word("an element type")?;
                self.expect(':')?;
                Some(word)
            }
        };
        // The type stands after the literal: pass over it, and come back.
        self.peek()?;
        let literal = self.lexer_at_peeked();
        self.skip_to_end_of_literal()?;
        self.expect(':')?;
        let tile = self.tile()?;
        self.location()?;
        if let Some((word, place)) = element
            && Number::of_name(word).map(|n| ElementType::Number(n.dtype)) != Some(tile.element)
        {
            let why = format!("the literal says \"{}\"; write the element type of {tile}", shown(word));
            return Err(Diagnostic::new(place, literal_cause(&tile, why)));
        }
        let mut inside = Parser::new(literal, self.empty_module());
        let elements = Arc::new(inside.literal(&tile)?);
        Ok((Operation::Constant { tile: tile.clone(), elements }, Some(tile)))
    }

    fn empty_module(&self) -> Module {
        Module { version: self.module.version, functions: Vec::new(), findings: Vec::new(), warnings: Vec::new() }
    }

    fn skip_to_end_of_literal(&mut self) -> Result<(), Diagnostic> {
        loop {
            let at = self.advance()?;
            match at.token {
                Token::Sign('>') => return Ok(()),
                Token::Word(_) | Token::Sign('[' | ']' | ',' | '-') => {}
                _ => return Err(self.unexpected("a number, \"[\" or \">\"", &at)),
            }
        }
    }

    fn literal(&mut self, tile: &TileType) -> Result<Tensor, Diagnostic> {
        let at = self.peek()?;
        if matches!(tile.element, ElementType::Pointer(_)) {
            return Err(Diagnostic::new(at.place, literal_cause(tile, "pointers have no constants".into())));
        }
        let dtype = tile.element.storage();
        let data = match at.token {
            Token::Sign('[') if tile.shape.is_empty() => {
                return Err(Diagnostic::new(
                    at.place,
                    literal_cause(tile, "a scalar takes one number, not a list".into()),
                ));
            }
            Token::Sign('[') => {
                let mut codes = Packer::new(dtype);
                self.list(tile, &tile.shape, &mut codes)?;
                Data::Codes(codes.into_bytes())
            }
            _ => Data::Splat(self.atom(tile)?),
        };
        self.expect('>')?;
        Ok(Tensor { dtype, shape: tile.shape.clone(), data })
    }

    /// One dimension of a nested list, which must be as long as the shape says.
    fn list(&mut self, tile: &TileType, shape: &[u64], codes: &mut Packer) -> Result<(), Diagnostic> {
        let (length, inner) = shape.split_first().expect("the caller has a dimension");
        let at = self.peek()?;
        self.expect('[')?;
        let mut found = 0u64;
        loop {
            let next = self.peek()?;
            match (next.token, inner.is_empty()) {
                (Token::Sign('['), false) => self.list(tile, inner, codes)?,
                (Token::Sign(']'), _) => {
                    return Err(Diagnostic::new(next.place, literal_cause(tile, "a list must not be empty".into())));
                }
                (Token::Sign('['), true) => {
                    let why = format!("the list is nested deeper than the shape of {tile}");
                    return Err(Diagnostic::new(next.place, literal_cause(tile, why)));
                }
                (_, false) => {
                    let why = format!("the list is nested less deeply than the shape of {tile}");
                    return Err(Diagnostic::new(next.place, literal_cause(tile, why)));
                }
                (_, true) => codes.push(self.atom(tile)?),
            }
            found += 1;
            if self.accept(']')? {
                break;
            }
            self.expect(',')?;
        }
        match found == *length {
            true => Ok(()),
            false => {
                let why = format!("{found} elements where the shape of {tile} says {length}");
                Err(Diagnostic::new(at.place, literal_cause(tile, why)))
            }
        }
    }

    fn atom(&mut self, tile: &TileType) -> Result<u64, Diagnostic> {
        let neg = self.accept('-')?;
        let (word, place) = self.word("a number")?;
        literal::code(tile.element.storage(), neg, word).map_err(|why| Diagnostic::new(place, literal_cause(tile, why)))
    }

    // ---- types ----

    fn tile_begins(&mut self) -> Result<bool, Diagnostic> {
        let mut ahead = {
            self.peek()?;
            self.lexer_at_peeked()
        };
        let mut token = ahead.next()?.token;
        if token == Token::Sign('!') {
            token = ahead.next()?.token;
        }
        Ok(matches!(token, Token::Word("tile" | "cuda_tile.tile")))
    }

    /// `tile<4x8xf32>`
    fn tile(&mut self) -> Result<Arc<TileType>, Diagnostic> {
        let place = self.peek()?.place;
        let form = |why: String| Diagnostic::new(place, Cause::TypeForm { why });
        if !self.tile_begins()? {
            let at = self.peek()?;
            return Err(match at.token {
                Token::Word("ptr" | "token" | "cuda_tile.ptr" | "cuda_tile.token") | Token::Sign('!') => {
                    form("conversions take tiles; a single pointer is written tile<ptr<..>>".into())
                }
                _ => self.unexpected("a type, as tile<4xf32>", &at),
            });
        }
        self.accept('!')?;
        self.word("tile")?;
        self.expect('<')?;
        let mut shape = Vec::new();
        let mut rest = match self.peek()?.token {
            Token::Word(word) => {
                self.advance()?;
                word
            }
            _ => "",
        };
        while let Some((front, after)) = rest.split_once('x')
            && !front.is_empty()
            && front.bytes().all(|b| b.is_ascii_digit())
        {
            shape.push(front.parse().map_err(|_| form(format!("dimension {} is too large", shown(front))))?);
            if shape.len() > MAX_RANK {
                return Err(form(format!("a tile has more than {MAX_RANK} dimensions")));
            }
            rest = after;
        }
        let element = self.element(rest, place)?;
        self.expect('>')?;
        self.gate(format!("type {element}"), element.since(), place);
        Ok(Arc::new(TileType { shape, element }))
    }

    /// The element, of which `word` was read.
    fn element(&mut self, word: &'a str, place: Place) -> Result<ElementType, Diagnostic> {
        let word = match word {
            "" => {
                self.accept('!')?;
                self.word("an element type")?.0
            }
            _ => word,
        };
        if !matches!(word, "ptr" | "cuda_tile.ptr") {
            return Ok(ElementType::Number(number(word, place)?));
        }
        self.expect('<')?;
        let (pointee, at) = self.word("the type that is pointed to")?;
        if matches!(pointee, "ptr" | "cuda_tile.ptr") {
            return Err(Diagnostic::new(at, Cause::Type(Malformed::Pointee("a pointer".into()))));
        }
        let pointee = number(pointee, at)?;
        self.expect('>')?;
        Ok(ElementType::Pointer(pointee))
    }

    /// Reports what the version of the file does not have, once.
    fn gate(&mut self, what: String, since: Release, place: Place) {
        let file = self.module.version;
        if since > file && self.too_new.insert(what.clone()) {
            self.module.find(Diagnostic::new(place, Cause::Newer { what, since, file }));
        }
    }
}

/// What an unknown name was probably meant to be, as the end of a message.
fn did_you_mean(name: &str) -> String {
    names::nearest(operation_name(name)).map_or(String::new(), |meant| format!("; did you mean \"{meant}\"?"))
}

fn number(word: &str, place: Place) -> Result<truecast_core::DType, Diagnostic> {
    Number::of_name(word).map(|n| n.dtype).ok_or_else(|| {
        Diagnostic::new(
            place,
            Cause::TypeForm { why: format!("\"{}\" is not an element type of Tile IR", shown(word)) },
        )
    })
}

fn literal_cause(tile: &TileType, why: String) -> Cause {
    Cause::Literal { element: literal::element_name(tile.element), why }
}
