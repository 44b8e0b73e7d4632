//! Text of the help and manual pages without options: usage, examples, exit status, files.

pub struct Page {
    pub command: &'static str,
    /// Lines of usage, without the word `truecast`.
    pub usage: &'static [&'static str],
    /// Purpose and command line of each example.
    pub examples: &'static [(&'static str, &'static str)],
    /// Options on a short page, in this order, separated by spaces.
    pub short: &'static str,
}

pub const PAGES: [Page; 21] = [
    Page {
        command: "convert",
        usage: &[
            "convert SRC DST --to TYPE [OPTIONS]", "convert SRC DST --rule GLOB=TYPE [OPTIONS]",
            "convert DIR OUT --scheme NAME [OPTIONS]", "convert SRC.. FOLDER --to TYPE [OPTIONS]",
        ],
        examples: &[
            ("A checkpoint in half the size", "truecast convert model.safetensors bf16.safetensors --to bf16"),
            (
                "In 8 bits, except the norms",
                "truecast convert model.safetensors f8.safetensors --to f8e4m3fn --keep '*norm*'",
            ),
            (
                "A folder of shards, with index, configuration and tokenizer",
                "truecast convert model model-bf16 --to bf16",
            ),
            (
                "An array of floats as integers, clamped",
                "truecast convert a.npy i8.npy --to i8 --spec ieee --int-overflow saturate",
            ),
            ("A folder as llama.cpp loads it", "truecast convert model model.gguf --to bf16"),
        ],
        short: "to scheme keep keep_preset from_scheme force resume dry_run report max_memory threads summary json",
    },
    Page {
        command: "quantize",
        usage: &["quantize SRC DST SCHEME [OPTIONS]", "quantize SRC.. FOLDER SCHEME [OPTIONS]"],
        examples: &[
            ("fp8 in blocks, as in DeepSeek and Qwen", "truecast quantize model model-fp8 fp8-block"),
            ("Blocks for llama.cpp, from any checkpoint", "truecast quantize model small.gguf q8_0"),
        ],
        short: "keep quantize to from_scheme scale_search force resume dry_run report max_memory threads \
                summary json",
    },
    Page {
        command: "dequantize",
        usage: &["dequantize SRC DST [OPTIONS]", "dequantize SRC.. FOLDER [OPTIONS]"],
        examples: &[
            ("An fp8 checkpoint in bf16", "truecast dequantize model-fp8 model-again"),
            ("In f32, for exact values", "truecast dequantize model-fp8 model-f32 --to f32"),
        ],
        short: "to keep from_scheme force resume dry_run report max_memory threads summary json",
    },
    Page {
        command: "inspect",
        usage: &["inspect SRC.. [OPTIONS]"],
        examples: &[
            ("Tensors with range, NaN and Inf", "truecast inspect model.safetensors --stats"),
            ("The norms, largest first", "truecast inspect model.safetensors --filter '*norm*' --sort size"),
            ("A model, for a script", "truecast inspect model.onnx --json"),
            ("The quantization of a checkpoint", "truecast inspect model"),
            ("Do its files agree?", "truecast inspect model --check"),
        ],
        short: "stats check filter sort json",
    },
    Page {
        command: "show",
        usage: &["show SRC [TENSOR[SLICE]] [OPTIONS]"],
        examples: &[
            ("The first values of a vector", "truecast show model.safetensors 'model.norm.weight[:8]'"),
            ("Every value of an array, for a script", "truecast show a.npy --json"),
        ],
        short: "json",
    },
    Page {
        command: "verify",
        usage: &[
            "verify DIR OUT [OPTIONS]", "verify SRC DST --to TYPE [OPTIONS]", "verify SRC DST --report FILE [OPTIONS]",
        ],
        examples: &[
            ("Check every bit", "truecast verify model.safetensors bf16.safetensors --to bf16"),
            (
                "With the options of the conversion",
                "truecast verify model.safetensors f8.safetensors --to f8e4m3fn --keep '*norm*'",
            ),
        ],
        short: "to rule keep scheme report full sample threads json",
    },
    Page {
        command: "compare",
        usage: &["compare A B [OPTIONS]"],
        examples: &[
            ("The loss of a conversion", "truecast compare model.safetensors bf16.safetensors"),
            ("Fail if values became NaN or Inf", "truecast compare a.npy i8.npy --fail-on to_nan,to_inf"),
            ("As a page", "truecast compare model.safetensors bf16.safetensors --report loss.html"),
        ],
        short: "fail_on report sort worst summary json",
    },
    Page {
        command: "report",
        usage: &["report FILE -o FILE.html [OPTIONS]", "report FILE -o FILE.md [OPTIONS]"],
        examples: &[
            ("A page from a report", "truecast report report.json -o report.html"),
            ("For the card of a model", "truecast report report.json -o card.md"),
        ],
        short: "output force json",
    },
    Page {
        command: "explain",
        usage: &["explain VALUE --to TYPE [OPTIONS]", "explain VALUE [--from TYPE]"],
        examples: &[
            ("0.1 in every type", "truecast explain 0.1"),
            ("Why 465 becomes 448", "truecast explain 465 --to f8e4m3fn"),
            ("Bits of f32 under one specification", "truecast explain 0x3f808000 --to bf16 --spec onnx@21"),
            ("In a format of IEEE P3109, with every rounding and saturation", "truecast explain 465 --to binary8p4se"),
        ],
        short: "to from spec exact clauses json",
    },
    Page {
        command: "explore",
        usage: &["explore [VALUE --to TYPE] [OPTIONS]", "explore FILE [OPTIONS]"],
        examples: &[
            ("Why 465 becomes 448, in the browser", "truecast explore 465 --to f8e4m3fn"),
            ("Where the bytes of a model are", "truecast explore model.safetensors"),
        ],
        short: "to from no_open port",
    },
    Page {
        command: "rescale",
        usage: &["rescale SRC DST --to TYPE --multiplier M --shift S [OPTIONS]"],
        examples: &[
            (
                "Accumulators to 8 bits, divided by 64",
                "truecast rescale acc.npy i8.npy --to i8 --multiplier 16384 --shift 20 --force",
            ),
            (
                "With a multiplier of 32 bits",
                "truecast rescale acc.npy out.npy --to i8 --multiplier 1073741824 --shift 36 --scale32",
            ),
        ],
        short: "to multiplier shift scale input_zp output_zp rounding per_channel force json",
    },
    Page {
        command: "run",
        usage: &["run MODEL --input NAME=FILE --output-dir DIR [OPTIONS]"],
        examples: &[
            ("An ONNX graph of Cast nodes", "truecast run model.onnx --input x=a.npy --output-dir out"),
            (
                "A Tile IR module, by the rules of a release",
                "truecast run kernel.mlir --input a=scalar.npy --output-dir values --spec tile@13.4",
            ),
        ],
        short: "input output_dir output_format spec entry force json",
    },
    Page {
        command: "check",
        usage: &["check cast|castlike|rescale --to TYPE --input FILE --actual FILE [OPTIONS]", "check MODEL [OPTIONS]"],
        examples: &[
            (
                "Check the results of another implementation",
                "truecast check cast --to f16 --input a.npy --actual theirs.npy",
            ),
            (
                "Check results of RESCALE",
                "truecast check rescale --to i8 --input acc.npy --actual i8.npy --scale 0.015625",
            ),
            ("Check that a model's conversions are legal", "truecast check model.onnx --spec onnx@21"),
        ],
        short: "spec from to input actual show json",
    },
    Page {
        command: "vectors",
        usage: &["vectors cast|castlike|rescale --from TYPE --to TYPE [OPTIONS]", "vectors suite DIR [OPTIONS]"],
        examples: &[
            ("Edge-case inputs and their results", "truecast vectors cast --from f32 --to f8e4m3fn"),
            (
                "As arrays, for another implementation",
                "truecast vectors cast --from bf16 --to f8e5m2 --format npy -o vectors",
            ),
            ("A folder of vectors and digests of one chip", "truecast vectors suite riscv-vectors --only riscv"),
        ],
        short: "spec from to level format output seed force json",
    },
    Page {
        command: "differ",
        usage: &["differ A B [--from TYPE] [--to TYPE] [OPTIONS]", "differ [--from TYPE] [--to TYPE] [OPTIONS]"],
        examples: &[
            ("Two releases of a library", "truecast differ torch@2.11 torch@2.15"),
            ("A chip and a standard, one pair, every code", "truecast differ arm onnx --from bf16 --to f8e4m3fn"),
            ("Options of a specification", "truecast differ ml_dtypes onnx:saturate=false --to f8e4m3fn"),
            ("Which specifications agree", "truecast differ --from f16 --to f8e4m3fn"),
        ],
        short: "from to show threads json",
    },
    Page {
        command: "formats",
        usage: &["formats [TYPE] [OPTIONS]"],
        examples: &[
            ("All types", "truecast formats"),
            ("One type, code by code", "truecast formats f8e4m3fn"),
            ("A format of IEEE P3109", "truecast formats binary8p4se"),
        ],
        short: "json",
    },
    Page {
        command: "schemes",
        usage: &["schemes [NAME] [OPTIONS]"],
        examples: &[("All schemes", "truecast schemes"), ("One with its parameters", "truecast schemes int4-group")],
        short: "json",
    },
    Page {
        command: "promote",
        usage: &["promote LHS RHS [OPTIONS]", "promote --table [OPTIONS]"],
        examples: &[
            ("The answer of every system", "truecast promote i32 f32"),
            ("The whole matrix of one system", "truecast promote --table --system numpy"),
        ],
        short: "table system json",
    },
    Page {
        command: "bench",
        usage: &["bench [OPTIONS]"],
        examples: &[
            ("Two pairs on one core", "truecast bench --pairs f32:bf16,f32:f8e4m3fn --sizes l2 --threads 1"),
            ("As on a CPU without AVX-512", "truecast bench --pairs f32:bf16 --sizes l2 --level avx2"),
        ],
        short: "pairs sizes threads json",
    },
    Page {
        command: "completions",
        usage: &["completions SHELL"],
        examples: &[
            ("For bash, in this shell", "eval \"$(truecast completions bash)\""),
            ("For fish", "truecast completions fish > truecast.fish"),
        ],
        short: "help",
    },
    Page {
        command: "man",
        usage: &["man [COMMAND]", "man --all DIR"],
        examples: &[
            ("One page", "truecast man convert > truecast-convert.1"),
            ("Every page", "truecast man --all man1"),
        ],
        short: "all",
    },
];

pub const EXIT_STATUS: [(&str, &str); 5] = [
    ("0", "done"),
    ("1", "a check found differences or illegal nodes, or --fail-on fired"),
    ("2", "the command line is wrong; also: the destination exists, a rule matches nothing"),
    ("3", "the input is malformed, unsupported or not allowed; also: an `error` policy refused a value"),
    ("4", "the system failed: input or output, memory, a full disk, an interruption"),
];

/// [`EXIT_STATUS`] in one line.
pub const EXIT_CODES: &str = "Exit status: 0 done, 1 different, 2 command line, 3 input, 4 system";

pub const FILES: [(&str, &str); 9] = [
    (".safetensors", "checkpoints; floating-point tensors are converted, the others copied unless a rule names them"),
    (
        "folders",
        "checkpoints of several files: convert writes index, shards and configuration and copies other files; \
         a partial result does not load",
    ),
    (".gguf", "block-quantized tensors: dequantized, or written from checkpoints with their tensor names"),
    (".npy, .npz", "NumPy arrays; types that NumPy lacks are stored as ml_dtypes stores them"),
    (".pb", "one tensor of ONNX (TensorProto)"),
    (".onnx", "models; weights are stored in the type and cast back where they are used"),
    (".xml, .bin", "networks of OpenVINO IR: run, check, inspect"),
    (".tosa", "graphs of TOSA: run, check, inspect"),
    (".mlir, .tileir, .tilebc, .tileirbc", "modules of CUDA Tile IR, text or bytecode: run, check, inspect"),
];

pub const CLAUSES: &str =
    "A clause such as docs/spec/onnx.md §4.6 names a page of the source tree and a section of it.";

pub fn page(command: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.command == command)
}
