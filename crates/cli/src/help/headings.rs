//! Under which heading of help an option stands: one table for every command.

use clap::Arg;

/// Options under a heading, for every command that has them; what is not listed stands under "Options".
pub const HEADINGS: [(&str, &str); 9] = [
    (
        "Types and tensors",
        "to from rule keep keep_preset filter from_scheme trust_scales nibbles reference min_elements lenient \
         follow_links pairs",
    ),
    ("Quantization", "scheme quantize scale_search mx_scale nonfinite activation_ranges share_global relayout"),
    (
        "Specification",
        "spec saturate round_mode rounding seed overflow inf int_overflow nan_to_int subnormals saturating profile \
         relu scale_exponent tile_option nan string_style exact_nan random_bits",
    ),
    ("RESCALE", "multiplier shift scale input_zp output_zp scale32 per_channel input_unsigned output_unsigned"),
    ("System", "system promote_unsafe strict pytorch_scalar u64_target lhs_rank rhs_rank jax_x64 tensorflow_mode"),
    (
        "Files",
        "input actual input_scale actual_scale output output_dir output_format format force resume part merge \
         no_sidecars dry_run report fail_on",
    ),
    ("Sample", "full sample sample_seed"),
    ("Resources", "measure max_memory threads"),
    ("Printing", "sort worst summary show json quiet wide color help"),
];

/// The name of an option in tables.
pub fn id_of(arg: &Arg) -> String {
    arg.get_id().as_str().replace('-', "_")
}

/// Where an option stands among all of them, and under which heading.
pub fn listed(arg: &Arg) -> Option<(usize, &'static str)> {
    let id = id_of(arg);
    let all = HEADINGS.iter().flat_map(|(heading, ids)| ids.split_whitespace().map(move |id| (*heading, id)));
    let mut all = all.enumerate().map(|(place, (heading, known))| (known, (place, heading)));
    all.find(|(known, _)| *known == id).map(|(_, place)| place)
}
