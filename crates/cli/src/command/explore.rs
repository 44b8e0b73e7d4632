//! `truecast explore`: the explorer's page from this program, on a port that only this machine reaches.
//!
//! Other pages in the browser cannot ask: every path begins with a random token, `Host` and `Origin` are checked.

use crate::args::ExploreArgs;
use crate::failure::Failure;
use crate::{explore, output};
use serde_json::{Value, json};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;
use tiny_http::{Method, Request, Server};
use truecast::header::{self, Start};
use truecast::io::{FileFormat, gguf, look, open_regular};
use truecast::literal::read as read_number;

macro_rules! files {
    ($($name:literal),*) => { [$(($name, include_str!(concat!("../../../../site/explorer/", $name)))),*] };
}
/// Files of the page and their contents.
const FILES: [(&str, &str); 13] = files! {
    "index.html", "base.css", "explorer.css", "engine-http.js", "elements.js", "shared.js", "cast.js", "formats.js",
    "differ.js", "checkpoint.js", "blocks.js", "promotion.js", "rescale.js"
};

/// Largest request: the first 100 MB of a file in base64.
const MOST_BYTES: u64 = 140_000_000;
/// Grace period after the last page closes; a reload closes the page and opens it again.
const GRACE_PERIOD: Duration = Duration::from_secs(2);

struct Site {
    /// Host and port, as in an address.
    host: String,
    /// 128 random bits of the system.
    token: String,
    file: Option<Value>,
    /// Number of pages that were opened.
    opened: AtomicUsize,
    /// Number of pages that were closed.
    closed: AtomicUsize,
    end: Sender<()>,
}

pub fn run(args: &ExploreArgs) -> Result<u8, Failure> {
    let subject = args.subject.as_deref().unwrap_or_default();
    let path = Path::new(subject);
    let is_file = args.to.is_none() && args.from.is_none() && look::is_file(path)?;
    let file = if is_file { Some(outline(path)?) } else { None };
    let view = match &file {
        Some(_) => "#checkpoint?served=1".into(),
        None if args.subject.is_none() => String::new(),
        None => {
            if look::is_folder(path)? {
                return Err(failure!(NotRegularFile, "{}: this is a folder; give a file in it", path.display()));
            }
            let is_path = subject.contains('/') || gguf::is_named(path) || FileFormat::of_path(path).is_some();
            let number = read_number(subject);
            if number.is_err() && is_path {
                open_regular(path)?;
            }
            number.map_err(|why| failure!(InvalidValue, "{subject:?} is neither a file nor a number: {why}"))?;
            let typed = [("from", args.from), ("to", args.to)]
                .map(|(name, dtype)| dtype.map_or(String::new(), |dtype| format!("&{name}={dtype}")));
            format!("#cast?value={}{}", in_address(subject), typed.concat())
        }
    };
    let server = Server::http((Ipv4Addr::LOCALHOST, args.port))
        .map_err(|error| failure!(IoError, "port {} of this machine cannot be opened: {error}", args.port))?;
    let port = server.server_addr().to_ip().map_or(args.port, |address| address.port());
    let (end, ended) = channel();
    // Browsers leave out the usual port.
    let host = if port == 80 { "127.0.0.1".into() } else { format!("127.0.0.1:{port}") };
    let random = || RandomState::new().build_hasher().finish();
    let token = format!("{:016x}{:016x}", random(), random());
    let address = format!("http://{host}/{token}/{view}");
    let (opened, closed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let site: &'static Site = Box::leak(Box::new(Site { host, token, file, opened, closed, end }));
    thread::spawn(move || {
        for request in server.incoming_requests() {
            thread::spawn(move || site.respond(request));
        }
    });
    output::text(&format!("{address}\nThe page asks this program. End with Ctrl-C, or close the page.\n"))?;
    if !args.no_open {
        // Without a browser the printed address remains.
        opener::open_browser(&address).ok();
    }
    ended.recv().ok();
    Ok(0)
}

/// Escapes characters that have a meaning in an address.
fn in_address(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'.' | b'-' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

/// Reads as much of a file as its header needs.
fn outline(path: &Path) -> Result<Value, Failure> {
    let (mut file, found) = open_regular(path)?;
    let (name, size) = (path.file_name().unwrap_or_default().to_string_lossy(), found.len());
    let mut read_at = |at: u64, length: usize| {
        let mut bytes = vec![0; length];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut bytes).map(|()| bytes)
    };
    let mut bytes = Vec::new();
    loop {
        let start = Start { name: &name, file_bytes: size, bytes: &bytes };
        match header::read(&start, Some(&mut read_at))? {
            header::Read::Outline(outline) => {
                let mut object = explore::header_to_json(&outline, &name);
                (object["name"], object["size"], object["read"]) = (json!(name), json!(size), json!(bytes.len()));
                return Ok(object);
            }
            header::Read::Needs(needed) => {
                let read = read_at(0, needed as usize);
                bytes = read.map_err(|error| failure!(IoError, "{}: reading the header: {error}", path.display()))?;
            }
        }
    }
}

/// Status, type and body of a reply.
type Reply = (u16, &'static str, Vec<u8>);

impl Site {
    fn respond(&'static self, mut request: Request) {
        let (status, kind, body) = self.reply(&mut request);
        // The server has few threads, and may let a connection wait until another one ends. `Response` keeps them open.
        let head = format!(
            "HTTP/1.1 {status} \r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: same-origin\r\n\r\n",
            body.len()
        );
        let mut out = request.into_writer();
        // A page that is gone needs no answer.
        out.write_all(&[head.as_bytes(), &body].concat()).and_then(|()| out.flush()).ok();
    }

    fn reply(&'static self, request: &mut Request) -> Reply {
        let Some(name) = request.url().strip_prefix(&format!("/{}/", self.token)).map(str::to_owned) else {
            return plain(404, "no such page: use the address that truecast explore printed");
        };
        if !self.is_own(request) {
            return plain(403, "only the explorer's own page may ask");
        }
        match (request.method(), name.as_str()) {
            (Method::Get, name) => {
                let (file, kind) = match name {
                    "" => ("index.html", "text/html; charset=utf-8"),
                    "engine.js" => ("engine-http.js", "text/javascript; charset=utf-8"),
                    _ if name.ends_with(".css") => (name, "text/css; charset=utf-8"),
                    _ => (name, "text/javascript; charset=utf-8"),
                };
                let Some((_, contents)) = FILES.iter().find(|(known, _)| *known == file) else {
                    return plain(404, "no such file");
                };
                self.opened.fetch_add(name.is_empty().into(), Ordering::SeqCst);
                (200, kind, contents.as_bytes().to_vec())
            }
            (Method::Post, "answer") => {
                let mut text = String::new();
                match request.as_reader().take(MOST_BYTES + 1).read_to_string(&mut text) {
                    Ok(read) if read as u64 <= MOST_BYTES => (200, "application/json", self.answer(&text).into()),
                    Ok(_) => plain(413, "the request is too long"),
                    Err(_) => plain(400, "the request is not text"),
                }
            }
            _ => plain(405, "GET and POST only"),
        }
    }

    /// Whether the request names this host, and comes from this page or, for a file of the page, from no page.
    fn is_own(&self, request: &Request) -> bool {
        let is = |name: &'static str, expected: &str| {
            let header = request.headers().iter().find(|header| header.field.equiv(name));
            header.map(|header| header.value.as_str() == expected)
        };
        let origin = is("Origin", &format!("http://{}", self.host));
        is("Host", &self.host) == Some(true) && origin.unwrap_or(*request.method() == Method::Get)
    }

    fn answer(&'static self, request: &str) -> String {
        match (request, &self.file) {
            (r#"{"ask":"file"}"#, Some(file)) => file.to_string(),
            (r#"{"ask":"goodbye"}"#, _) => {
                self.closed.fetch_add(1, Ordering::SeqCst);
                let opened = self.opened.load(Ordering::SeqCst);
                thread::spawn(move || self.end_unless_reloaded(opened));
                "{}".into()
            }
            _ => explore::answer(request),
        }
    }

    /// Ends the command if every page has said good-bye, and no page is opened for a while.
    fn end_unless_reloaded(&self, opened: usize) {
        thread::sleep(GRACE_PERIOD);
        let is_same = self.opened.load(Ordering::SeqCst) == opened;
        if is_same && self.closed.load(Ordering::SeqCst) >= opened {
            self.end.send(()).ok();
        }
    }
}

fn plain(status: u16, text: &'static str) -> Reply {
    (status, "text/plain; charset=utf-8", text.into())
}
