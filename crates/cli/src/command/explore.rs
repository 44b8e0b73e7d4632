//! `truecast explore`: the explorer's page from this program, on a port that only this machine reaches.
//!
//! Other pages in the browser cannot ask: every path begins with a random token, `Host` and `Origin` are checked.

use crate::args::ExploreArgs;
use crate::failure::Failure;
use crate::{explore, output};
use oxhttp::Server;
use oxhttp::model::{Body, HeaderMap, Method, Request, Response, StatusCode, header};
use serde_json::{Value, json};
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use truecast::header::{Outline, Read as HeaderRead, Start, read};
use truecast::io::look;

/// Files of the page: name, type and contents.
const FILES: [(&str, &str, &str); 11] = [
    ("", "text/html; charset=utf-8", include_str!("../../../../site/explorer/index.html")),
    ("explorer.css", "text/css; charset=utf-8", include_str!("../../../../site/explorer/explorer.css")),
    ("engine.js", SCRIPT, include_str!("../../../../site/explorer/engine-http.js")),
    ("shared.js", SCRIPT, include_str!("../../../../site/explorer/shared.js")),
    ("cast.js", SCRIPT, include_str!("../../../../site/explorer/cast.js")),
    ("formats.js", SCRIPT, include_str!("../../../../site/explorer/formats.js")),
    ("differ.js", SCRIPT, include_str!("../../../../site/explorer/differ.js")),
    ("checkpoint.js", SCRIPT, include_str!("../../../../site/explorer/checkpoint.js")),
    ("blocks.js", SCRIPT, include_str!("../../../../site/explorer/blocks.js")),
    ("promotion.js", SCRIPT, include_str!("../../../../site/explorer/promotion.js")),
    ("rescale.js", SCRIPT, include_str!("../../../../site/explorer/rescale.js")),
];
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Largest request: the first 100 MB of a file in base64.
const MOST_BYTES: u64 = 140_000_000;
/// Each page keeps up to six connections open.
const MOST_CONNECTIONS: usize = 256;
/// Time after the last page's good-bye in which a reloaded page can come back.
const PATIENCE: Duration = Duration::from_secs(2);

struct Site {
    /// Host and port, as in an address.
    host: String,
    token: String,
    file: Option<Value>,
    /// Numbers of pages that were opened, and that said good-bye.
    opened: AtomicUsize,
    closed: AtomicUsize,
    end: Mutex<Sender<()>>,
}

pub fn run(args: &ExploreArgs) -> Result<u8, Failure> {
    let subject = args.subject.as_deref().unwrap_or_default();
    let path = Path::new(subject);
    let file = if args.to.is_none() && look::is_file(path)? { Some(outline(path)?) } else { None };
    let view = match (&file, args.to) {
        (Some(_), _) => "#checkpoint?served=1".into(),
        (None, to) if !subject.is_empty() || to.is_some() => {
            let from = args.from.map_or(String::new(), |from| format!("&from={from}"));
            let to = to.map_or(String::new(), |to| format!("&to={to}"));
            format!("#cast?value={}{from}{to}", in_address(subject))
        }
        _ => String::new(),
    };
    let failed = |error: io::Error| failure!(IoError, "no port of this machine can be opened: {error}");
    // The port is free again for the server, which only takes a number.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    drop(listener);
    let (end, ended) = channel();
    let (host, token) = (format!("127.0.0.1:{port}"), token());
    let address = format!("http://{host}/{token}/{view}");
    let site =
        Site { host, token, file, opened: AtomicUsize::new(0), closed: AtomicUsize::new(0), end: Mutex::new(end) };
    let site: &'static Site = Box::leak(Box::new(site));
    let server = Server::new(move |request| site.respond(request))
        .bind((Ipv4Addr::LOCALHOST, port))
        .with_global_timeout(Duration::from_secs(10))
        .with_max_concurrent_connections(MOST_CONNECTIONS);
    let _listening = server.spawn().map_err(failed)?;
    output::text(&format!("{address}\nThe page asks this program. End with Ctrl-C, or close the page.\n"))?;
    if !args.no_open {
        // Without a browser the printed address remains.
        opener::open_browser(&address).ok();
    }
    ended.recv().ok();
    Ok(0)
}

/// 128 random bits of the system.
fn token() -> String {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random())
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
    let failed = |error| {
        Failure::from(truecast::files::Error::from(truecast::io::Error::Io {
            path: path.into(),
            action: "reading the header",
            source: error,
        }))
    };
    let mut file = File::open(path).map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut bytes = Vec::new();
    loop {
        let start = Start { name: &name, file_bytes: size, bytes: &bytes };
        match read(&start)? {
            HeaderRead::Outline(outline) => return Ok(described(&outline, &start)),
            HeaderRead::Needs(needed) => {
                let more = needed - bytes.len() as u64;
                let got = (&mut file).take(more).read_to_end(&mut bytes).map_err(failed)?;
                if (got as u64) < more {
                    return Err(failed(io::ErrorKind::UnexpectedEof.into()));
                }
            }
        }
    }
}

fn described(outline: &Outline, start: &Start<'_>) -> Value {
    let mut object = explore::header_to_json(outline, start.name);
    object["name"] = json!(start.name);
    object["size"] = json!(start.file_bytes);
    object["read"] = json!(start.bytes.len());
    object
}

impl Site {
    fn respond(&'static self, request: &mut Request<Body>) -> Response<Body> {
        let path = request.uri().path();
        let Some(name) = path.strip_prefix(&format!("/{}/", self.token)).map(str::to_owned) else {
            return plain(StatusCode::NOT_FOUND, "no such page: use the address that truecast explore printed");
        };
        if !self.is_own(request.headers(), request.method()) {
            return plain(StatusCode::FORBIDDEN, "only the explorer's own page may ask");
        }
        match (request.method(), name.as_str()) {
            (&Method::GET, name) => match FILES.iter().find(|(known, ..)| *known == name) {
                Some((_, kind, contents)) => {
                    if name.is_empty() {
                        self.opened.fetch_add(1, Ordering::SeqCst);
                    }
                    reply(StatusCode::OK, kind, *contents)
                }
                None => plain(StatusCode::NOT_FOUND, "no such file"),
            },
            (&Method::POST, "answer") => {
                let mut text = String::new();
                match request.body_mut().take(MOST_BYTES + 1).read_to_string(&mut text) {
                    Ok(read) if read as u64 <= MOST_BYTES => {
                        reply(StatusCode::OK, "application/json", self.answer(&text))
                    }
                    Ok(_) => plain(StatusCode::PAYLOAD_TOO_LARGE, "the request is too long"),
                    Err(_) => plain(StatusCode::BAD_REQUEST, "the request is not text"),
                }
            }
            _ => plain(StatusCode::METHOD_NOT_ALLOWED, "GET and POST only"),
        }
    }

    /// Whether the request names this host, and comes from this page or from the address line.
    fn is_own(&self, headers: &HeaderMap, method: &Method) -> bool {
        let is = |name, expected: &str| headers.get(name).map(|value| value.as_bytes() == expected.as_bytes());
        let origin = is(header::ORIGIN, &format!("http://{}", self.host));
        is(header::HOST, &self.host) == Some(true) && origin.unwrap_or(method == Method::GET)
    }

    fn answer(&'static self, request: &str) -> String {
        match request {
            r#"{"ask":"file"}"# => self.file.as_ref().unwrap_or(&Value::Null).to_string(),
            r#"{"ask":"goodbye"}"# => {
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
        thread::sleep(PATIENCE);
        let is_same = self.opened.load(Ordering::SeqCst) == opened;
        if is_same && self.closed.load(Ordering::SeqCst) >= opened {
            self.end.lock().unwrap_or_else(PoisonError::into_inner).send(()).ok();
        }
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    reply(status, "text/plain; charset=utf-8", text)
}

fn reply(status: StatusCode, kind: &str, body: impl Into<Body>) -> Response<Body> {
    Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind)
        .header(header::CACHE_CONTROL, "no-store")
        .header(header::X_CONTENT_TYPE_OPTIONS, "nosniff")
        .header(header::REFERRER_POLICY, "no-referrer")
        .body(body.into())
        .expect("the headers are constants")
}
