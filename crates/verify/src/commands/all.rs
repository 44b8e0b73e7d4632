//! `verify all`: the command lines that it runs (`docs/kernels.md §11`).

#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Options {
    /// Sampled, for every change: a few minutes on two cores. Without it, hours
    #[arg(long)]
    pub quick: bool,
}

/// Command lines, and the options that make them quick.
const LINES: [[&str; 2]; 16] = [
    ["asm --brief", ""],
    ["theorem", ""],
    ["properties", "--limit=4096"],
    ["split", "--lengths=70 --elements=70000"],
    ["counts", "--limit=12000 --limit-16=12000"],
    ["rescale", "--cases=20"],
    ["scaled", "--cases=2"],
    ["ftz", "--limit=4096"],
    ["boundary", "--limit=40000 --limit-others=2000 --random=8000 --random-policies=2"],
    ["small", "--oracle-every=64 --policy-every=8 --random-policies=2"],
    ["sweep", "--sample=1024"],
    ["sweep --src=i32", "--sample=1024"],
    ["sweep --src=u32", "--sample=1024"],
    ["sweep --dst=bool,i4,i8,u8,i32,u32,i64,f32,f64", "--sample=1024"],
    ["sweep --dst=f8e8m0 --rounding=away,toward-zero,nearest-up", "--sample=1024"],
    ["sweep --nan --policy=nan-canonical,nan-max-signed,nan-max-positive,nan-to-int-saturate", "--sample=16"],
];

impl Options {
    /// Arguments of each command, beginning with its name.
    pub fn lines(self) -> impl Iterator<Item = impl Iterator<Item = &'static str>> {
        let words = move |[line, quick]: [&'static str; 2]| {
            let quick = if self.quick { quick } else { "" };
            line.split_whitespace().chain(quick.split_whitespace())
        };
        LINES.into_iter().map(words)
    }
}
