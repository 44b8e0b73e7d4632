//! Settings of a specification that cannot change a result of the run are errors that say so: which, why, and what was
//! probably meant; but not those that say the default where they have a meaning. Whether they matter is the library's
//! answer ([`truecast::setting`]); nothing is decided here.

use crate::failure::Failure;
use crate::policy::PolicyArgs;
use truecast::DType;
use truecast::policy::TextStyle;
use truecast::request::{Request, Standard};
use truecast::setting::{Setting, agree};
use truecast::spec::ieee;

type Pair = (DType, DType);

/// Refuses the first setting that was typed and matters for none of the conversions, unless it says what happens anyway
/// and has a meaning for a destination.
pub fn check(policy: &PolicyArgs, request: &Request, pairs: impl IntoIterator<Item = Pair>) -> Result<(), Failure> {
    let given = given(policy, request);
    if given.is_empty() {
        return Ok(());
    }
    let mut distinct: Vec<Pair> = Vec::new();
    for pair in pairs {
        if !distinct.contains(&pair) {
            distinct.push(pair);
        }
    }
    // What the specification does not allow is said elsewhere.
    if distinct.iter().any(|&(src, dst)| request.resolve(src, dst).is_err()) {
        return Ok(());
    }
    let is_idle = |setting: &Setting| {
        !matters(*setting, request, &distinct) && !says_the_default(*setting, policy, request, &distinct)
    };
    match given.into_iter().find(is_idle) {
        Some(setting) => Err(Failure::usage(refusal(setting, request, &distinct))),
        None => Ok(()),
    }
}

fn matters(setting: Setting, request: &Request, pairs: &[Pair]) -> bool {
    pairs.iter().any(|&(src, dst)| setting.matters(request, src, dst))
}

/// The results are those without the setting, whatever the source, and another value of it could give others.
fn says_the_default(setting: Setting, policy: &PolicyArgs, request: &Request, pairs: &[Pair]) -> bool {
    let Some(Ok(without)) = policy.without(setting).map(|policy| policy.request()) else { return false };
    pairs.iter().any(|&(_, dst)| setting.has_meaning(request, dst))
        && pairs.iter().all(|&(_, dst)| agree(request, &without, dst))
}

/// What was typed.
fn given(policy: &PolicyArgs, request: &Request) -> Vec<Setting> {
    let typed = [
        (policy.saturate.is_some(), Setting::Saturate),
        (policy.round_mode.is_some(), Setting::RoundMode),
        (policy.rounding.is_some(), Setting::Rounding),
        (policy.overflow.is_some(), Setting::Overflow),
        (policy.inf.is_some(), Setting::Inf),
        (policy.int_overflow.is_some(), Setting::IntOverflow),
        (policy.nan_to_int.is_some(), Setting::NanToInt),
        (policy.subnormals.is_some(), Setting::Subnormals),
        (policy.saturating, Setting::Saturating),
        (policy.profile.is_some(), Setting::Profile),
        (policy.nan.is_some(), Setting::Nan),
        (policy.string_style.is_some(), Setting::TextStyle),
    ];
    let mut given: Vec<Setting> =
        typed.into_iter().filter_map(|(is_typed, setting)| is_typed.then_some(setting)).collect();
    match request.standard {
        Standard::Tile { cast, .. } => given.extend(cast.options.names().map(Setting::TileOption)),
        Standard::Tosa { .. } => {}
        _ => given.retain(|setting| *setting != Setting::Profile),
    }
    given
}

fn option(setting: Setting) -> String {
    match setting {
        Setting::TileOption(value) => format!("--{} {value}", setting.name()),
        _ => format!("--{}", setting.name()),
    }
}

/// What a setting is about, after "it is about".
fn about(setting: Setting, request: &Request) -> &'static str {
    match setting {
        Setting::Profile if request.spec() == "tosa" => "what TOSA leaves open between floating-point types",
        Setting::Saturate => "values out of the range of 8-bit floating-point types",
        Setting::RoundMode => "the rounding to f8e8m0",
        Setting::Rounding => "values between two neighbors of the destination",
        Setting::Overflow => "values beyond the range of floating-point types",
        Setting::Inf => "infinities that become floating-point numbers",
        Setting::IntOverflow => "values beyond the range of integer types",
        Setting::NanToInt => "NaN that becomes an integer",
        Setting::Subnormals => "subnormal numbers",
        Setting::Saturating => "values out of the range of an integer that floating-point values become",
        Setting::TextStyle => "floating-point numbers that become text",
        Setting::Profile => "what the sources of Tile IR say differently",
        Setting::TileOption(_) => "conversions that docs/spec/tile-ir.md §2.3 names",
        _ => "the sign and payload of NaN",
    }
}

/// What may have been meant instead: a setting, whether it is one of `ieee`, and how it is said.
fn others(setting: Setting) -> &'static [(Setting, bool, &'static str)] {
    match setting {
        Setting::Overflow => &[(Setting::IntOverflow, false, "integers overflow by --int-overflow")],
        Setting::Inf => &[(Setting::IntOverflow, false, "infinities become integers by --int-overflow")],
        Setting::IntOverflow => &[(Setting::Overflow, false, "floating-point values overflow by --overflow")],
        Setting::NanToInt => &[(Setting::Nan, false, "NaN that stays NaN is treated by --nan")],
        Setting::Saturate => &[
            (Setting::IntOverflow, true, "integers are clamped with --spec ieee --int-overflow saturate"),
            (Setting::Overflow, true, "other types are clamped with --spec ieee --overflow saturate"),
        ],
        Setting::RoundMode => &[(Setting::Rounding, true, "other types are rounded by --spec ieee --rounding")],
        _ => &[],
    }
}

/// `--overflow has no effect on f32 to i8: it is about values beyond the range of floating-point types; integers overflow
/// by --int-overflow`.
fn refusal(setting: Setting, request: &Request, pairs: &[Pair]) -> String {
    let option = option(setting);
    let Some(&first) = pairs.first() else {
        return format!("{option} has no effect: no tensor is converted");
    };
    let shown: Vec<String> = pairs.iter().take(3).map(|(src, dst)| format!("{src} to {dst}")).collect();
    let more = if pairs.len() > shown.len() {
        format!(" and {} other pairs", pairs.len() - shown.len())
    } else {
        String::new()
    };
    let ieee = Request { standard: Standard::Ieee(ieee::Cast::to(first.1)), nan: None, text: TextStyle::default() };
    let meant = others(setting)
        .iter()
        .find(|(other, of_ieee, _)| matters(*other, if *of_ieee { &ieee } else { request }, pairs));
    let reason = match meant {
        _ if is_hidden(setting, request, first) => Some("another option decides before it".into()),
        Some((_, _, meant)) => Some((*meant).to_string()),
        None => because(setting, request, first),
    };
    let reason = reason.map_or(String::new(), |reason| format!("; {reason}"));
    format!("{option} has no effect on {}{more}: it is about {}{reason}", shown.join(", "), about(setting, request))
}

/// The request without what was typed.
fn plain(request: &Request) -> Request {
    let standard = match request.standard {
        Standard::Ieee(cast) => Standard::Ieee(ieee::Cast::to(cast.to)),
        Standard::Tosa { target, .. } => Standard::Tosa { target, freedoms: Default::default() },
        other => other,
    };
    Request { standard, nan: None, text: TextStyle::default() }
}

/// By itself the setting would matter.
fn is_hidden(setting: Setting, request: &Request, (src, dst): Pair) -> bool {
    setting.matters(&plain(request), src, dst)
}

/// Why nothing of the sort occurs, if a few words say it.
fn because(setting: Setting, request: &Request, (src, dst): Pair) -> Option<String> {
    let is_about_nan = matches!(setting, Setting::Nan | Setting::NanToInt);
    if is_about_nan && !Setting::Nan.matters(&plain(request), src, dst) {
        return Some(format!("{src} has no NaN"));
    }
    (src.embeds_in(dst)).then(|| format!("every value of {src} is a value of {dst}"))
}
