//! Numbers of the report: digits tied to the error, thousands, powers of ten, exact amounts of a budget, factors and percentages rounded up.
//!
//! Everything here is total: a number that is missing, infinite or out of range becomes a dash.

use super::Cost;

/// Shown where a value is missing or not finite.
pub(super) const NONE: &str = "–";

/// A number with a fixed count of decimals, a true minus sign and narrow spaces between thousands.
pub(super) fn fixed(x: f64, decimals: usize) -> String {
    if !x.is_finite() {
        return NONE.to_owned();
    }
    let plain = format!("{:.*}", decimals.min(15), x.abs());
    let (whole, fraction) = plain
        .split_once('.')
        .map_or((plain.as_str(), None), |(w, f)| (w, Some(f)));
    let mut out = String::new();
    // A value that rounds to zero carries no sign.
    if x < 0.0 && plain.bytes().any(|b| b.is_ascii_digit() && b != b'0') {
        out.push('−');
    }
    for (i, c) in whole.chars().enumerate() {
        // Four digits stay together ("1996"); five and more are grouped.
        if i > 0 && whole.len() > 4 && (whole.len() - i) % 3 == 0 {
            out.push('\u{202f}');
        }
        out.push(c);
    }
    if let Some(f) = fraction {
        out.push('.');
        out.push_str(f);
    }
    out
}

/// A number on its own: about four significant digits, scientific outside 10⁻⁴ … 10¹².
pub(super) fn number(x: f64) -> String {
    if !x.is_finite() {
        return NONE.to_owned();
    }
    let size = x.abs();
    if size == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e12).contains(&size) {
        return scientific(x, 3);
    }
    let whole = exponent(size);
    let decimals = usize::try_from(3 - whole).unwrap_or(0);
    let text = fixed(x, decimals);
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// `1.23 × 10⁻⁵`, with `digits` significant digits.
pub(super) fn scientific(x: f64, digits: usize) -> String {
    let text = format!("{:.*e}", digits.saturating_sub(1), x);
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    let mantissa = mantissa.replace('-', "−");
    let power: String = power.chars().map(superscript).collect();
    match mantissa.as_str() {
        "1" => format!("10{power}"),
        _ => format!("{mantissa} × 10{power}"),
    }
}

pub(super) fn superscript(c: char) -> char {
    match c {
        '-' => '⁻',
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        other => other,
    }
}

/// The power of ten of the leading digit; 0 for zero and for what is not finite.
#[allow(clippy::cast_possible_truncation)] // a finite f64 has a power between −324 and 308
pub(super) fn exponent(x: f64) -> i32 {
    let power = x.abs().log10().floor();
    if power.is_finite() { power as i32 } else { 0 }
}

/// Decimals that show an error with two significant digits (a value is never printed more finely than that).
pub(super) fn decimals(error: f64) -> Option<usize> {
    (error.is_finite() && error > 0.0)
        .then(|| usize::try_from(1 - exponent(error)).unwrap_or(0).min(12))
}

/// A value printed to the precision its error allows.
pub(super) fn to_error(x: f64, error: Option<f64>) -> String {
    match error.and_then(decimals) {
        Some(_) if x.abs() >= 1e15 || error.is_some_and(|e| e < 1e-9) => number(x),
        Some(_) if x.fract() == 0.0 && error.is_some_and(|e| e.fract() == 0.0) => fixed(x, 0),
        Some(d) => fixed(x, d),
        None => number(x),
    }
}

/// `31 402 ± 38`.
pub(super) fn plus_minus(x: Option<f64>, error: Option<f64>) -> String {
    let Some(x) = x else { return NONE.to_owned() };
    match error.filter(|e| e.is_finite() && *e > 0.0) {
        Some(e) => {
            // The place of the second digit of the error, also where it is left of the point. The error is rounded up.
            let place = exponent(e) - 1;
            if place > 0 && x.abs() < 1e15 {
                let unit = 10_f64.powi(place);
                let up = (e / unit - 1e-9).ceil() * unit;
                format!("{} ± {}", fixed((x / unit).round() * unit, 0), fixed(up, 0))
            } else {
                let up = round_up(e, usize::try_from(-place).unwrap_or(0));
                format!("{} ± {}", to_error(x, Some(up)), to_error(up, Some(up)))
            }
        }
        None => number(x),
    }
}

/// `0.885 to 0.901`, both ends printed to the precision of half the width.
pub(super) fn interval(low: Option<f64>, high: Option<f64>) -> String {
    let (Some(low), Some(high)) = (low, high) else {
        return NONE.to_owned();
    };
    let half = (high - low).abs() / 2.0;
    format!(
        "{} to {}",
        to_error(low, Some(half)),
        to_error(high, Some(half))
    )
}

/// A word with its count: `1 row`, `3 rows`.
pub(super) fn plural(n: usize, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        fixed(as_f64(n), 0),
        if n == 1 { one } else { many }
    )
}

/// A count as a float; counts here are sizes of JSON arrays.
#[allow(clippy::cast_precision_loss)]
pub(super) fn as_f64(n: usize) -> f64 {
    n as f64
}

// ---------------------------------------------------------------------------------------------
// Costs

/// `ε = 0.5`, `ε = 1, δ = 10⁻⁷`, `ρ = 0.05`; plain text.
pub(super) fn cost(c: &Cost) -> String {
    let mut parts = Vec::new();
    for (name, value) in [("ε", &c.epsilon), ("δ", &c.delta), ("ρ", &c.rho)] {
        if let Some(v) = value {
            parts.push(format!("{name}\u{a0}=\u{a0}{}", amount(v)));
        }
    }
    if parts.is_empty() {
        NONE.to_owned()
    } else {
        parts.join(", ")
    }
}

/// An exact amount as written, when that is short; otherwise its value to six digits, marked as rounded.
pub(super) fn amount(exact: &str) -> String {
    let exact = exact.trim();
    match value_of(exact) {
        Some(x)
            if x != 0.0
                && (x.abs() < 1e-4
                    || (exact.contains(['e', 'E']) && !(0.1..1e6).contains(&x.abs()))) =>
        {
            scientific(x, 4)
        }
        Some(_) if exact.len() <= 9 => exact.replace('-', "−"),
        Some(x) if x != 0.0 && !(1e-4..1e9).contains(&x.abs()) => format!("≈ {}", scientific(x, 4)),
        Some(x) => {
            let d = usize::try_from(5 - exponent(x)).unwrap_or(0);
            format!(
                "≈ {}",
                fixed(x, d).trim_end_matches('0').trim_end_matches('.')
            )
        }
        None => exact.to_owned(),
    }
}

/// The value of `"0.5"`, `"1e-7"` or `"1/3"`; `None` for anything that is not a finite number.
pub(super) fn value_of(exact: &str) -> Option<f64> {
    let parse = |s: &str| s.trim().parse::<f64>().ok().filter(|x| x.is_finite());
    match exact.split_once('/') {
        Some((p, q)) => Some(parse(p)? / parse(q)?).filter(|x| x.is_finite()),
        None => parse(exact),
    }
}

/// Exact sum (`sign` = 1) or difference (−1) of two decimal amounts; falls back to floating point for fractions and
/// for numbers with more than some thirty digits.
pub(super) fn combine(a: &str, b: &str, sign: i128) -> Option<String> {
    let exact = || {
        let (m, s) = decimal(a)?;
        let (n, t) = decimal(b)?;
        let scale = s.max(t);
        let m = m.checked_mul(10_i128.checked_pow(scale - s)?)?;
        let n = n.checked_mul(10_i128.checked_pow(scale - t)?)?;
        Some(written(m.checked_add(n.checked_mul(sign)?)?, scale))
    };
    #[allow(clippy::cast_precision_loss)]
    exact().or_else(|| Some(format!("{:e}", value_of(a)? + value_of(b)? * sign as f64)))
}

/// `"-1.25e-3"` as (−125, 5).
pub(super) fn decimal(text: &str) -> Option<(i128, u32)> {
    let text = text.trim();
    let (digits, power) = match text.split_once(['e', 'E']) {
        Some((d, p)) => (d, p.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mantissa: i128 = format!("{whole}{fraction}").parse().ok()?;
    let scale = i32::try_from(fraction.len()).ok()?.checked_sub(power)?;
    match u32::try_from(scale) {
        Ok(s) if s <= 36 => Some((mantissa, s)),
        Ok(_) => None,
        Err(_) => Some((
            mantissa.checked_mul(10_i128.checked_pow(scale.unsigned_abs())?)?,
            0,
        )),
    }
}

pub(super) fn written(mantissa: i128, scale: u32) -> String {
    let scale = usize::try_from(scale).unwrap_or(0);
    let digits = format!(
        "{:0>width$}",
        mantissa.unsigned_abs().to_string(),
        width = scale + 1
    );
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let fraction = fraction.trim_end_matches('0');
    let sign = if mantissa < 0 { "-" } else { "" };
    if fraction.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{fraction}")
    }
}

// ---------------------------------------------------------------------------------------------
// Worst-case odds

/// e^x as a factor, rounded up, with enough digits to differ from one.
pub(super) fn factor(x: f64) -> String {
    if !x.is_finite() || x > 700.0 {
        return "any amount".to_owned();
    }
    let gain = x.exp_m1();
    if gain <= 0.0 {
        return "1".to_owned();
    }
    if x < 0.01 {
        // Two significant digits of the part above one.
        let places = usize::try_from(1 - exponent(gain)).unwrap_or(2).min(15);
        return fixed(1.0 + round_up(gain, places), places);
    }
    let value = x.exp();
    if value < 1e6 {
        let places = usize::try_from(2 - exponent(value)).unwrap_or(0);
        fixed(round_up(value, places), places)
    } else {
        scientific(value * 1.005, 3)
    }
}

/// Rounded up to `places` decimals; the nudge keeps values that are exact in decimals (up to float error) as they are.
pub(super) fn round_up(x: f64, places: usize) -> f64 {
    let unit = 10_f64.powi(i32::try_from(places).unwrap_or(0));
    let scaled = x * unit;
    if scaled.is_finite() {
        (scaled - 1e-9 * scaled.abs().min(1.0)).ceil() / unit
    } else {
        x
    }
}

pub(super) fn percent_up(p: f64) -> String {
    let p = p.clamp(0.0, 1.0);
    let percent = (p * 100.0 - 1e-9).ceil();
    if percent >= 100.0 && p < 1.0 {
        // Never round a probability below one up to certainty.
        "more than 99 %".to_owned()
    } else {
        format!("{} %", fixed(percent, 0))
    }
}
