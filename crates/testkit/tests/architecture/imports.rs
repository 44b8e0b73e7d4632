//! Imports between the files of a crate.
//!
//! A file imports another if it names an item of the other, in `use` or by a path with `crate`, `self` or `super`.
//! Re-exports (`pub use`) and tests at the end of a file are ignored.

use std::collections::{BTreeMap, BTreeSet};

use regex_lite::Regex;

/// Path of a module below the crate root; the root is empty.
pub type Module = Vec<String>;

pub type Imports = BTreeMap<Module, BTreeSet<Module>>;

pub fn imports(files: &BTreeMap<Module, String>) -> Imports {
    let mut all = Imports::new();
    for (module, text) in files {
        for path in paths(text) {
            if let Some(target) = target(files, module, &path) {
                all.entry(module.clone()).or_default().insert(target);
            }
        }
    }
    all
}

fn paths(text: &str) -> Vec<String> {
    let pattern = |pattern: &str| Regex::new(pattern).expect("a pattern");
    let text = pattern(r"//[^\n]*").replace_all(text, "");
    let text = pattern(r"#\[cfg\(test\)\]\s*mod ").splitn(&text, 2).next().unwrap_or_default().to_string();
    let text = pattern(r"\bpub(\([^)]*\))?\s+use\s+[^;]+;").replace_all(&text, "");
    let uses = pattern(r"\buse\s+([^;]+);");
    let mut paths: Vec<String> = uses.captures_iter(&text).flat_map(|found| expanded(&found[1])).collect();
    let rest = uses.replace_all(&text, "");
    let named = pattern(r"\b(?:crate|super|self)(?:::\w+)+");
    paths.extend(named.find_iter(&rest).map(|found| found.as_str().to_string()));
    paths
}

/// Paths in a `use` tree: `a::{b, c::{d, e}}` gives `a::b`, `a::c::d`, `a::c::e`.
fn expanded(tree: &str) -> Vec<String> {
    let Some((head, rest)) = tree.split_once('{') else {
        let name = tree.split(" as ").next().unwrap_or_default();
        return vec![name.split_whitespace().collect()];
    };
    let inside = rest.rsplit_once('}').map_or(rest, |(inside, _)| inside);
    let (mut depth, mut item, mut items) = (0, String::new(), Vec::new());
    for c in inside.chars().chain([',']) {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 0 => items.push(std::mem::take(&mut item)),
            _ => item.push(c),
        }
    }
    let items = items.iter().filter(|item| !item.trim().is_empty());
    let head: String = head.split_whitespace().collect();
    items.flat_map(|item| expanded(item)).map(|path| format!("{head}{path}")).collect()
}

/// Module of a path in the file `here`, if the module is another file of the crate.
fn target(files: &BTreeMap<Module, String>, here: &Module, path: &str) -> Option<Module> {
    let mut names = path.split("::").map(str::to_string).peekable();
    let mut at = match names.peek()?.as_str() {
        "crate" => {
            names.next();
            Module::new()
        }
        "self" | "super" => {
            let mut at = here.clone();
            while let Some(name) = names.next_if(|name| name == "self" || name == "super") {
                if name == "super" {
                    at.pop();
                }
            }
            at
        }
        child if files.contains_key(&joined(here, child)) => here.clone(),
        _ => return None,
    };
    while let Some(name) = names.next_if(|name| files.contains_key(&joined(&at, name))) {
        at.push(name);
    }
    let is_enclosing = here.starts_with(&at) && names.peek().is_none();
    (files.contains_key(&at) && at != *here && !is_enclosing).then_some(at)
}

fn joined(module: &[String], name: &str) -> Module {
    module.iter().cloned().chain([name.to_string()]).collect()
}

/// Sets of modules that import each other, directly or indirectly.
pub fn circles(imports: &Imports) -> Vec<BTreeSet<Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        imports.keys().map(|module| (module, reachable(imports, module))).collect();
    let reaches = |from: &Module, to: &Module| reached.get(from).is_some_and(|all| all.contains(to));
    let circle = |module: &Module| -> BTreeSet<Module> {
        let others = imports.keys().filter(|other| reaches(module, other) && reaches(other, module));
        others.chain([module]).cloned().collect()
    };
    let all: BTreeSet<BTreeSet<Module>> = imports.keys().map(circle).filter(|circle| circle.len() > 1).collect();
    all.into_iter().collect()
}

fn reachable<'a>(imports: &'a Imports, from: &Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&Module> = imports.get(from).into_iter().flatten().collect();
    while let Some(next) = waiting.pop() {
        if reached.insert(next) {
            waiting.extend(imports.get(next).into_iter().flatten());
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_of(files: &[(&str, &str)]) -> BTreeMap<Module, String> {
        let module = |path: &str| path.split("::").filter(|name| !name.is_empty()).map(str::to_string).collect();
        files.iter().map(|(path, text)| (module(path), text.to_string())).collect()
    }

    fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let circles = circles(&imports(&crate_of(files)));
        circles.into_iter().map(|circle| circle.into_iter().map(|module| module.join("::")).collect()).collect()
    }

    #[test]
    fn a_circle_of_three_is_found() {
        let files = [
            ("", "mod a; mod b; mod c; mod d;"),
            ("a", "use crate::b::{B, Other as Mine};"),
            ("b", "fn f() { super::c::g() }"),
            ("c", "use super::{a, d::{D, E}};"),
            ("d", "use std::fmt;"),
        ];
        assert_eq!(circles_of(&files), [["a", "b", "c"]]);
    }

    #[test]
    fn what_is_no_import() {
        let files = [
            ("", "pub mod a; mod b; pub use a::A; use b::B;"),
            ("a", "// use crate::b::B;\npub use crate::b::B;\n/// [`crate::b::B`]\nfn f() { self::g() }"),
            ("b", "use crate::a::A;\n#[cfg(test)]\nmod tests { use crate::c::C; }"),
            ("c", "use crate::b::B;"),
        ];
        assert_eq!(circles_of(&files), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_module_and_its_child() {
        let files = [("", "mod a;"), ("a", "mod b; use b::B; pub struct A;"), ("a::b", "use super::A; pub struct B;")];
        assert_eq!(circles_of(&files), [["a", "a::b"]]);
    }
}
