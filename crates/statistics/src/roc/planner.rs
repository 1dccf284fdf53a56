//! What a ROC release will look like, from public numbers only.

use reticent_accounting::Rational;

use super::default_depth;
use crate::common::Facts;

/// Records of the smaller class times ε below which a curve means nothing.
const LEAST: f64 = 10.0;

/// The public plan of a ROC release.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// n·ε of one model, halved under replace-one; `None` without a public number of rows.
    pub signal: Option<f64>,
    /// The same for the smaller class, from the declared share of positives (½ without one).
    pub minority: Option<f64>,
    /// Number of bins.
    pub bins: u32,
    /// Whether a curve is drawn. Below 10 for the smaller class its vertices are noise, and only the band is shown.
    pub drawn: bool,
    /// Why, in words.
    pub reason: String,
}

/// Bins from n·ε by the rule m = 2^⌊.4·log₂(nε)⌋ within 4..=512 (8 if the number of rows is unknown), and whether there is anything
/// to draw.
pub fn plan(facts: &Facts<'_>, epsilon: &Rational, models: usize) -> Plan {
    let parts = crate::common::size(models.max(1));
    let signal = facts.signal(epsilon).map(|s| s / parts);
    let share = facts.positive_rate.filter(|p| p.is_finite());
    let smaller = share.map_or(0.5, |p| p.min(1.0 - p).clamp(0.0, 0.5));
    let minority = signal.map(|s| s * smaller);
    let bins = signal.map_or(8, |s| 1 << default_depth(s));
    let (drawn, reason) = match minority {
        None => (true, format!("{bins} bins; the number of rows is unknown")),
        Some(m) if m < LEAST => (
            false,
            format!(
                "{m:.1} records of the smaller class times epsilon are fewer than {LEAST}: noise would draw the curve, so only its band is shown"
            ),
        ),
        Some(m) if m < 3.0 * LEAST => (
            true,
            format!(
                "{bins} bins; expect a rough curve: {m:.0} records of the smaller class times epsilon"
            ),
        ),
        Some(_) => (true, format!("{bins} bins")),
    };
    Plan {
        signal,
        minority,
        bins,
        drawn,
        reason,
    }
}
