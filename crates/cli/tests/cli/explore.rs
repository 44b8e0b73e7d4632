//! `truecast explore`: the page and its answers over HTTP, and who may ask.

use crate::run::Folder;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use truecast::policy::Overflow;
use truecast::spec::ieee;
use truecast::{DType, cast_one};
use truecast_testkit::safetensors::one_tensor;

struct Server {
    process: Child,
    host: String,
    /// Path of the page, with slashes at both ends.
    root: String,
    /// State of the page in the address.
    state: String,
}

impl Server {
    fn new(folder: &Folder, line: &str) -> Server {
        let words = line.split_whitespace();
        let mut command = folder.command();
        let mut process = command.args(words).arg("--no-open").stdout(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut first).unwrap();
        let address = first.trim().strip_prefix("http://").unwrap_or_else(|| panic!("{line}: {first:?}"));
        let (host, path) = address.split_once('/').unwrap();
        let (root, state) = path.rsplit_once('/').unwrap();
        Server { process, host: host.into(), root: format!("/{root}/"), state: state.into() }
    }

    /// Status and body of a request.
    fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {}\r\n", body.len()).unwrap();
        headers.iter().for_each(|(name, value)| write!(stream, "{name}: {value}\r\n").unwrap());
        write!(stream, "\r\n{body}").unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.into())
    }

    fn get(&self, name: &str) -> (u16, String) {
        self.send("GET", &format!("{}{name}", self.root), &[("Host", &self.host)], "")
    }

    fn ask(&self, request: &Value) -> Value {
        let origin = format!("http://{}", self.host);
        let headers = [("Host", self.host.as_str()), ("Origin", &origin)];
        let (status, body) = self.send("POST", &format!("{}answer", self.root), &headers, &request.to_string());
        assert_eq!(status, 200, "{request}: {body}");
        serde_json::from_str(&body).unwrap()
    }

    /// Exit status of the command, if it ends within the time.
    fn ends_within(&mut self, time: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        loop {
            let status = self.process.try_wait().unwrap();
            if status.is_some() || begin.elapsed() > time {
                return status;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The server has every file that the page names.
#[test]
fn the_page_and_its_files() {
    let server = Server::new(&Folder::new(), "explore -1.5e-3 --to f8e4m3fn --from f16");
    assert_eq!(server.state, "#cast?value=-1.5e-3&from=f16&to=f8e4m3fn");
    let (status, page) = server.get("");
    assert_eq!(status, 200);
    let named = page.split('"').filter(|text| text.ends_with(".js") || text.ends_with(".css")).collect::<Vec<_>>();
    assert!(named.len() > 7 && named.contains(&"engine.js"), "{named:?}");
    named.iter().for_each(|name| assert_eq!(server.get(name).0, 200, "{name}"));
    assert_eq!(server.get("../Cargo.toml").0, 404);
}

fn ask(request: &Value) -> Value {
    serde_json::from_str(&truecast_cli::explore::answer(&request.to_string())).unwrap()
}

#[test]
fn answers_are_those_of_the_command() {
    let folder = Folder::new();
    let server = Server::new(&folder, "explore");
    let explained = folder.run("explain 465 --to f8e4m3fn --json").succeeds().object("explain");
    let answer = server.ask(&json!({ "ask": "cast", "value": "465", "from": "f32", "to": "f8e4m3fn" }));
    assert_eq!(answer["results"], explained["results"]);
    assert_eq!(answer["source"]["fields"], json!([1, 8, 23]));
    let differ = folder.run("differ torch ml_dtypes --from f16 --to f8e4m3fn --json").succeeds().object("differ");
    let asked = json!({ "ask": "differ", "a": "torch", "b": "ml_dtypes", "from": "f16", "to": "f8e4m3fn" });
    assert_eq!(server.ask(&asked)["pairs"], differ["pairs"]);
    let formats = folder.run("formats --json").succeeds().object("formats");
    assert_eq!(server.ask(&json!({ "ask": "formats" }))["types"], formats["types"]);
}

/// Each name converts the pair, or says why not.
#[test]
fn names_that_convert_a_pair() {
    let answer = ask(&json!({ "ask": "names", "from": "bf16", "to": "f8e4m3fn" }));
    let names = answer["names"].as_array().unwrap();
    let why = |name: &str| names.iter().find(|each| each["name"] == name).map(|each| each["why"].clone()).unwrap();
    assert_eq!(names.len(), truecast::request::SPECS.len());
    assert_eq!((why("torch"), why("tile")), (Value::Null, Value::Null));
    assert!(why("wgsl").as_str().is_some_and(|why| why.contains("bf16")), "{answer}");
}

/// The rule that an answer states has the answer's result: saturation, wrapping, truncation, an open result.
#[test]
fn an_answer_has_its_reasons() {
    for (value, to, result, rule) in [
        ("465", "f8e4m3fn", "448", "saturates"),
        ("465", "f8e4m3fn", "NaN", "becomes NaN"),
        ("2.7", "i8", "2", "truncates"),
        ("2.7", "i8", "3", "to nearest"),
        ("300", "i8", "44", "wraps"),
        ("300", "i8", "127", "saturates"),
        ("1e-40", "bf16", "0", "flushes"),
        ("1", "bf16", "1", "is a value of the type"),
    ] {
        let answer = ask(&json!({ "ask": "cast", "value": value, "from": "f32", "to": to }));
        let answers = answer["answers"].as_array().unwrap();
        assert!(answers.iter().all(|one| one["why"][0].is_string()), "{answer}");
        let is_it = |one: &Value| one["value"] == result && one["why"].to_string().contains(rule);
        assert!(answers.iter().any(is_it), "{value} {to} {rule}: {answer}");
    }
}

/// The error equals a sum over many casts.
#[test]
fn error_of_normal_weights() {
    for dtype in [DType::F8E4M3Fn, DType::F8E5M2, DType::F4E2M1, DType::F16] {
        let spec = ieee::Cast { overflow: Overflow::Saturate, ..ieee::Cast::to(dtype) };
        let (cast, back) = (spec.resolve(DType::F64).unwrap(), ieee::Cast::to(DType::F64).resolve(dtype).unwrap());
        for sigma in [1e-4, 0.02, 3.0, 400.0] {
            let (mut noise, mut density) = (0.0, 0.0);
            for at in -160_000..160_000 {
                let t = (f64::from(at) + 0.5) / 20_000.0;
                let code = cast_one(&cast, (t * sigma).to_bits()).code().unwrap();
                let wide = cast_one(&back, code).code().unwrap();
                let weight = (-t * t / 2.0).exp();
                noise += weight * (f64::from_bits(wide) / sigma - t).powi(2);
                density += weight;
            }
            let expected = (noise / density).sqrt();
            let asked = json!({ "ask": "binades", "types": [dtype.name()], "sigma": sigma.to_string() });
            let error = ask(&asked)["types"][0]["normal"]["error"].as_f64().unwrap();
            assert!((error / expected - 1.0).abs() < 2e-3, "{dtype} {sigma}: {error} {expected}");
        }
    }
}

/// No value below the threshold of overflow errs more, and the worst one errs as much.
#[test]
fn relative_error_of_rounding_to_nearest() {
    let answer = ask(&json!({ "ask": "binades", "types": ["f8e4m3fn", "f8e5m2", "f4e2m1", "f8e8m0"] }));
    for one in answer["types"].as_array().unwrap() {
        let dtype = DType::parse(one["name"].as_str().unwrap()).unwrap();
        let spec = ieee::Cast::to(dtype).resolve(DType::F64).unwrap();
        let back = ieee::Cast::to(DType::F64).resolve(dtype).unwrap();
        let overflow: f64 = one["overflow"].as_str().unwrap().parse().unwrap();
        let binades = one["binades"].as_array().unwrap();
        for binade in binades {
            let power = 2f64.powi(binade["exponent"].as_i64().unwrap() as i32);
            let error = |at: u32| {
                let value = power * (1.0 + f64::from(at) / 4096.0);
                let code = cast_one(&spec, value.to_bits()).code().filter(|_| value < overflow)?;
                Some((f64::from_bits(cast_one(&back, code).code()?) - value).abs() / value)
            };
            let worst = (0..4096).filter_map(error).fold(0.0, f64::max);
            let bound = binade["relative_error"].as_f64().unwrap();
            assert!(worst <= bound && worst > 0.999 * bound, "{dtype} {binade} {worst}");
        }
        let last = 2f64.powi(binades.last().unwrap()["exponent"].as_i64().unwrap() as i32);
        assert!((last..2.0 * last).contains(&overflow), "{dtype} {overflow}");
    }
}

/// Only refused operations have a reason.
#[test]
fn reasons_for_no_result() {
    let asked = json!({ "ask": "rescale", "from": "u8", "to": "i8", "scale": "1", "low": -1, "high": 300 });
    let answer = ask(&asked);
    for row in answer["rows"].as_array().unwrap() {
        let value = row["input"].as_i64().unwrap();
        let why = (!(0..256).contains(&value)).then(|| format!("{value} is not a value of u8"));
        assert_eq!((row["why"].as_str(), row["single"].is_null()), (why.as_deref(), why.is_some()), "{row}");
    }
    for system in ["torch", "jax", "numpy", "tensorflow", "openvino"] {
        let answer = ask(&json!({ "ask": "promotion", "system": system }));
        assert!(answer["version"].is_string() && answer["mode"].is_string(), "{answer}");
        let cells = |key: &str| answer[key].as_array().unwrap().iter().flat_map(|row| row.as_array().unwrap().clone());
        assert!(cells("rows").zip(cells("why")).all(|(result, why)| result.is_null() != why.is_null()), "{answer}");
        assert_eq!(cells("why").count(), answer["types"].as_array().unwrap().len().pow(2));
    }
}

#[test]
fn nonsense_is_an_answer() {
    let absurd = json!({ "ask": "binades", "types": vec!["f64"; 1000] }).to_string();
    for (request, code) in [
        (r#"{"ask":"cast","value":"four","from":"f32","to":"f16"}"#, "invalid-value"),
        (r#"{"ask":"cast","value":"4","from":"f31","to":"f16"}"#, "unknown-type"),
        (r#"{"ask":"cast","value":"4","from":"f32","to":"string"}"#, "invalid-value"),
        (r#"{"ask":"cast","value":"4","from":"c64","to":"f16"}"#, "invalid-value"),
        (r#"{"ask":"differ","a":"tosa","b":"onnx","from":"i64","to":"f16"}"#, "unsupported-type"),
        (r#"{"ask":"differ","a":"wgsl","b":"torch","from":"bf16","to":"f8e4m3fn"}"#, "unsupported-pair"),
        (r#"{"ask":"header","name":"a.gguf","size":5,"bytes":"R0dVRv8="}"#, "malformed-file"),
        (r#"{"ask":"header","name":"a.gguf","size":18446744073709551615,"bytes":""}"#, "malformed-file"),
        (r#"{"ask":"header","name":"a.safetensors","size":8,"bytes":"//////////8="}"#, "malformed-file"),
        (r#"{"ask":"header","name":"tokenizer.json","size":2,"bytes":"e30="}"#, "malformed-file"),
        (r#"{"ask":"block","scheme":"q4_0","values":["one"]}"#, "invalid-value"),
        (r#"{"ask":"binades","types":["f16"],"sigma":"0"}"#, "invalid-value"),
        (r#"{"ask":"binades","types":["f16"],"sigma":"0x3f94000000000000"}"#, "invalid-value"),
        (r#"{"ask":"rescale","from":"i32","to":"i8","scale":"1","low":0,"high":1000000}"#, "invalid-value"),
        (r#"{"ask":"rescale","from":"i32","to":"i8","multiplier":-5,"shift":300,"low":0,"high":1}"#, "invalid-value"),
        (
            r#"{"ask":"rescale","from":"i8","to":"i8","low":-9223372036854775808,"high":9223372036854775807}"#,
            "invalid-value",
        ),
        (&absurd, "invalid-value"),
        (r#"{"ask":"file"}"#, "invalid-value"),
        ("nonsense", "invalid-value"),
    ] {
        let answer: Value = serde_json::from_str(&truecast_cli::explore::answer(request)).unwrap();
        let error = &answer["error"];
        // The page has no options.
        let says = |text: &str| !text.is_empty() && !text.contains("--");
        assert!(error["message"].as_str().is_some_and(says), "{request}: {answer}");
        assert_eq!(error["code"], code, "{request}: {answer}");
    }
    let ends = json!({ "ask": "rescale", "from": "i8", "to": "i8", "scale": "1", "input_zp": 1, "low": i64::MIN, "high": i64::MIN });
    assert!(ask(&ends)["rows"].is_array());
}

/// Another page, another name of this host, and an address without the token are refused.
#[test]
fn only_its_own_page_may_ask() {
    let server = Server::new(&Folder::new(), "explore");
    let (host, own) = (server.host.as_str(), format!("http://{}", server.host));
    let answer = format!("{}answer", server.root);
    let request = r#"{"ask":"systems"}"#;
    for (method, path, headers, status) in [
        ("POST", answer.as_str(), &[("Host", host), ("Origin", &own)][..], 200),
        ("POST", &answer, &[("Host", host)], 403),
        ("POST", &answer, &[("Host", host), ("Origin", "http://example.org")], 403),
        ("POST", &answer, &[("Host", host), ("Origin", "null")], 403),
        ("POST", &answer, &[("Host", "example.org"), ("Origin", &own)], 403),
        ("GET", &server.root, &[("Host", "example.org")], 403),
        ("POST", "/answer", &[("Host", host), ("Origin", &own)], 404),
        ("GET", "/", &[("Host", host)], 404),
        ("PUT", &answer, &[("Host", host), ("Origin", &own)], 405),
    ] {
        assert_eq!(server.send(method, path, headers, request).0, status, "{method} {path} {headers:?}");
    }
}

/// The scheme is known, also if small tensors state it in their data, and the line that the page proposes runs.
#[test]
fn schemes_are_known_and_proposed_lines_run() {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/minilm/model.safetensors");
    let folder = Folder::with("model.safetensors", &std::fs::read(model).unwrap());
    folder.run("convert model.safetensors plain.gguf --to bf16").exits(0);
    folder.run("quantize plain.gguf blocks.gguf q8_0").exits(0);
    folder.run("quantize model.safetensors codes.safetensors fp8").exits(0);
    folder.run("convert model.safetensors cast.safetensors --to f8e5m2").exits(0);
    for (name, scheme) in [
        ("model.safetensors", ""),
        ("plain.gguf", ""),
        ("blocks.gguf", "gguf:Q8_0"),
        ("codes.safetensors", "comfy:float8_e4m3fn"),
        ("cast.safetensors", ""),
    ] {
        let server = Server::new(&folder, &format!("explore {name}"));
        assert_eq!(server.state, "#checkpoint?served=1");
        let answer = server.ask(&json!({ "ask": "file" }));
        assert_eq!((&answer["name"], &answer["parameters"]), (&json!(name), &json!(68_736)), "{answer}");
        assert_eq!((&answer["scheme"], &answer["warnings"]), (&json!(scheme), &json!([])), "{answer}");
        let unscaled = (name == "cast.safetensors").then_some("f8e5m2");
        assert_eq!(answer["unscaled"], json!(unscaled));
        let line = answer["command"].as_str().unwrap().strip_prefix("truecast ").unwrap();
        folder.run(line).exits(0);
    }
}

/// A browser opens several connections at once. It keeps those that the server does not ask it to close.
#[test]
fn connections_at_once_are_all_answered() {
    let server = Server::new(&Folder::new(), "explore");
    let request = format!("GET {}shared.js HTTP/1.1\r\nHost: {}\r\n\r\n", server.root, server.host);
    for _ in 0..20 {
        let open = || TcpStream::connect(&server.host).unwrap();
        let connections: Vec<TcpStream> = (0..8).map(|_| open()).collect();
        let ask = |mut stream: TcpStream| {
            stream.write_all(request.as_bytes()).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            assert!(line.starts_with("HTTP/1.1 200"), "{line:?}");
            while reader.read_line(&mut line).unwrap() > 2 {}
            (!line.contains("Connection: close")).then_some(reader)
        };
        std::thread::scope(|scope| {
            let asked: Vec<_> = connections.into_iter().map(|stream| scope.spawn(move || ask(stream))).collect();
            let _kept: Vec<_> = asked.into_iter().map(|one| one.join().unwrap()).collect();
        });
    }
}

/// Malformed requests do not end the command.
#[test]
fn odd_requests_do_not_end_it() {
    let server = Server::new(&Folder::new(), "explore");
    let absurd = "x".repeat(100_000);
    for request in [
        "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n",
        "\0\0\0\r\n\r\n",
        "GET",
        &format!("GET /{absurd} HTTP/1.1\r\n\r\n"),
    ] {
        let mut stream = TcpStream::connect(&server.host).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        drop(stream);
        assert_eq!(server.get("").0, 200, "{:?}", &request[..3]);
    }
}

#[test]
fn what_is_no_file_and_no_number() {
    let folder = Folder::with("m/config.json", b"{}");
    folder.write("cut.safetensors", &one_tensor(&[1.0, 2.0])[..20]);
    for (line, code, said) in [
        ("explore modle.gguf", 4, "modle.gguf"),
        ("explore nosuch.safetensors", 4, "nosuch.safetensors"),
        ("explore m", 3, "m: this is a folder; give a file in it"),
        ("explore cut.safetensors", 3, "cut off"),
        ("explore abc", 2, "neither a file nor a number"),
        ("explore --port 80000", 2, "80000"),
    ] {
        folder.run(&format!("{line} --no-open")).fails(code, &[said]);
    }
}

/// The last page's good-bye ends the command, unless the page comes back.
#[test]
fn the_last_page_ends_it() {
    let mut server = Server::new(&Folder::new(), "explore");
    server.get("");
    server.ask(&json!({ "ask": "goodbye" }));
    server.get("");
    assert_eq!(server.ends_within(Duration::from_secs(3)), None);
    server.ask(&json!({ "ask": "goodbye" }));
    assert!(server.ends_within(Duration::from_secs(10)).is_some_and(|status| status.success()));
}
