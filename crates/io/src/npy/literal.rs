//! Parses the Python literal in a `.npy` header: `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`. Keys
//! may come in any order. Other keys, expressions, escapes and nesting are errors.

use crate::error::npy::HeaderError;
use crate::tensor::MAX_RANK;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Literal {
    pub(super) descr: String,
    pub(super) is_fortran: bool,
    pub(super) shape: Vec<u64>,
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

type Result<T> = std::result::Result<T, HeaderError>;

impl Literal {
    pub(super) fn parse(text: &[u8]) -> Result<Literal> {
        let mut p = Parser { text, at: 0 };
        let (mut descr, mut is_fortran, mut shape) = (None, None, None);
        p.expect(b'{', "a dictionary")?;
        loop {
            if p.take(b'}') {
                break;
            }
            let key = p.string()?;
            p.expect(b':', "a colon")?;
            let is_new = match key {
                "descr" => {
                    if matches!(p.peek(), Some(b'[' | b'(')) {
                        return Err(HeaderError::Structured);
                    }
                    descr.replace(p.string()?.to_owned()).is_none()
                }
                "fortran_order" => is_fortran.replace(p.boolean()?).is_none(),
                "shape" => shape.replace(p.tuple()?).is_none(),
                _ => return Err(HeaderError::UnknownKey { key: key.to_owned() }),
            };
            if !is_new {
                return Err(HeaderError::DuplicateKey { key: key.to_owned() });
            }
            if !p.take(b',') {
                p.expect(b'}', "a comma or a closing brace")?;
                break;
            }
        }
        match p.peek() {
            Some(_) => Err(p.error("blanks")),
            None => Ok(Literal {
                descr: descr.ok_or(HeaderError::MissingKey { key: "descr" })?,
                is_fortran: is_fortran.ok_or(HeaderError::MissingKey { key: "fortran_order" })?,
                shape: shape.ok_or(HeaderError::MissingKey { key: "shape" })?,
            }),
        }
    }
}

impl<'a> Parser<'a> {
    fn error(&self, expected: &'static str) -> HeaderError {
        HeaderError::Syntax { at: self.at, expected }
    }

    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Result<()> {
        if self.take(byte) { Ok(()) } else { Err(self.error(expected)) }
    }

    fn string(&mut self) -> Result<&'a str> {
        let Some(quote @ (b'\'' | b'"')) = self.peek() else { return Err(self.error("a string")) };
        self.at += 1;
        let rest = &self.text[self.at..];
        // A backslash would start an escape, and no descriptor has one.
        let end = rest.iter().position(|&b| b == quote || b == b'\\' || !(b' '..=b'~').contains(&b));
        match end {
            Some(end) if rest[end] == quote => {
                self.at += end + 1;
                std::str::from_utf8(&rest[..end]).map_err(|_| self.error("a string"))
            }
            _ => {
                self.at += end.unwrap_or(rest.len());
                Err(self.error("a string of plain characters"))
            }
        }
    }

    fn boolean(&mut self) -> Result<bool> {
        self.peek();
        let rest = &self.text[self.at..];
        for (word, value) in [(&b"True"[..], true), (b"False", false)] {
            let follows = rest.get(word.len()).copied().unwrap_or(b' ');
            if rest.starts_with(word) && !follows.is_ascii_alphanumeric() && follows != b'_' {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.error("True or False"))
    }

    /// Reads a tuple: `()`, `(3,)`, `(3, 4)`. A lone `(3)` is an error, because it is an integer in Python.
    fn tuple(&mut self) -> Result<Vec<u64>> {
        self.expect(b'(', "a tuple")?;
        let mut numbers = Vec::new();
        let mut had_comma = true;
        loop {
            if self.peek() == Some(b')') {
                if numbers.len() == 1 && !had_comma {
                    return Err(self.error("a comma, which makes it a tuple"));
                }
                self.at += 1;
                return Ok(numbers);
            }
            if !had_comma {
                return Err(self.error("a comma or a closing parenthesis"));
            }
            if numbers.len() == MAX_RANK {
                return Err(HeaderError::RankTooHigh);
            }
            numbers.push(self.number()?);
            had_comma = self.take(b',');
        }
    }

    /// Reads a decimal integer, with the final `L` of Python 2's long integers.
    fn number(&mut self) -> Result<u64> {
        if self.peek() == Some(b'-') {
            return Err(self.error("a dimension that is not negative"));
        }
        let digits = self.text[self.at..].iter().take_while(|b| b.is_ascii_digit()).count();
        let text = &self.text[self.at..self.at + digits];
        if text.is_empty() || (text[0] == b'0' && digits > 1) {
            return Err(self.error("a plain integer"));
        }
        let number = std::str::from_utf8(text).ok().and_then(|t| t.parse().ok());
        let number = number.ok_or_else(|| self.error("a dimension below 2^64"))?;
        self.at += digits;
        if matches!(self.text.get(self.at), Some(b'L' | b'l')) {
            self.at += 1;
        }
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Result<Vec<u64>> {
        let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {text}, }}");
        Literal::parse(text.as_bytes()).map(|l| l.shape)
    }

    #[test]
    fn tuples() {
        assert_eq!(shape("()"), Ok(vec![]));
        assert_eq!(shape("(3,)"), Ok(vec![3]));
        assert_eq!(shape("( 3 ,4, )"), Ok(vec![3, 4]));
        assert_eq!(shape("(3L, 4L)"), Ok(vec![3, 4])); // Python 2
        assert_eq!(shape("(18446744073709551615,)"), Ok(vec![u64::MAX]));
        for wrong in
            ["(3)", "(,)", "(3,,)", "(3 4)", "[3]", "3", "(-1,)", "(1.0,)", "(1e2,)", "(0x1,)", "(01,)", "(3LL,)"]
        {
            assert!(matches!(shape(wrong), Err(HeaderError::Syntax { .. })), "{wrong}");
        }
        assert!(matches!(shape("(18446744073709551616,)"), Err(HeaderError::Syntax { .. })));
        assert_eq!(shape(&format!("({})", "1,".repeat(64))).map(|s| s.len()), Ok(64));
        assert_eq!(shape(&format!("({})", "1,".repeat(65))), Err(HeaderError::RankTooHigh));
    }

    #[test]
    fn dictionaries() {
        let parse = |text: &str| Literal::parse(text.as_bytes());
        let same = Literal { descr: "<f4".into(), is_fortran: true, shape: vec![2] };
        assert_eq!(parse("{'descr':'<f4','fortran_order':True,'shape':(2,)}"), Ok(same));
        assert!(parse("{\"shape\": (2,), 'fortran_order': True, 'descr': \"<f4\"}  \n").is_ok());
        let missing = parse("{'descr': '<f4', 'shape': ()}");
        assert_eq!(missing, Err(HeaderError::MissingKey { key: "fortran_order" }));
        let twice = parse("{'descr': '<f4', 'descr': '<f4', 'fortran_order': True, 'shape': ()}");
        assert_eq!(twice, Err(HeaderError::DuplicateKey { key: "descr".into() }));
        let more = parse("{'descr': '<f4', 'fortran_order': True, 'shape': (), 'x': ()}");
        assert_eq!(more, Err(HeaderError::UnknownKey { key: "x".into() }));
        assert_eq!(parse("{'descr': [('a', '<f4')], "), Err(HeaderError::Structured));
        let endings = ["} x", "}\0", "", ",,}"];
        for end in endings {
            let text = format!("{{'descr': '<f4', 'fortran_order': True, 'shape': (){end}");
            assert!(matches!(parse(&text), Err(HeaderError::Syntax { .. })), "{text}");
        }
        for wrong in
            ["", "[]", "{", "{'descr'", "{'descr': b'<f4'}", "{'descr': '<\\x66'}", "{'fortran_order': Truely}"]
        {
            assert!(matches!(parse(wrong), Err(HeaderError::Syntax { .. })), "{wrong}");
        }
    }
}
