//! Quantiles of Student's t, for intervals.

/// The two-sided .95 quantile: t with P(|T| ≤ t) = .95.
pub(crate) fn quantile_95(df: f64) -> f64 {
    if df.is_nan() || df >= 1e7 {
        return 1.959_963_984_540_054;
    }
    let df = df.max(1.0);
    let (mut low, mut high) = (0.0, 20.0);
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if tail(middle, df) > 0.05 {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// P(|T| > t) = I_{df/(df+t²)}(df/2, 1/2).
pub(crate) fn tail(t: f64, df: f64) -> f64 {
    incomplete_beta(df / (df + t * t), 0.5 * df, 0.5)
}

/// P(F > f) on (k, m) degrees of freedom = I_{m/(m+kf)}(m/2, k/2); 1 for f ≤ 0.
pub(crate) fn f_tail(f: f64, k: f64, m: f64) -> f64 {
    if f.is_nan() {
        return f64::NAN;
    }
    incomplete_beta(m / (m + k * f.max(0.0)), 0.5 * m, 0.5 * k)
}

/// Regularised incomplete beta function by its continued fraction (Lentz).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x.is_nan() || x <= 0.0 {
        return if x.is_nan() { x } else { 0.0 };
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(x, a, b) / a
    } else {
        1.0 - front * fraction(1.0 - x, b, a) / b
    }
}

fn fraction(x: f64, a: f64, b: f64) -> f64 {
    let tiny = 1e-300;
    let guard = |v: f64| if v.abs() < tiny { tiny } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut h = d;
    for i in 1..2000 {
        let m = f64::from(i);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        h *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let change = d * c;
        h *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    h
}

/// ln Γ(x) for x > 0: Stirling's series after shifting the argument above 15.
fn ln_gamma(x: f64) -> f64 {
    let mut x = x;
    let mut shift = 0.0;
    while x < 15.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r / 1680.0))) / x;
    shift + (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + series
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `golden/distributions.json` (scipy): two-sided t and upper F tails, to 1e-9 relative.
    #[test]
    fn tails_match_the_golden_values() {
        let text = include_str!("../../../golden/distributions.json");
        let golden: serde_json::Value = serde_json::from_str(text).unwrap();
        let near = |found: f64, case: &serde_json::Value| {
            let wanted = case["p"].as_f64().unwrap();
            assert!((found / wanted - 1.0).abs() < 1e-9, "{case}: {found}");
        };
        let number = |case: &serde_json::Value, key: &str| case[key].as_f64().unwrap();
        let cases = golden["student_t_two_sided_p"].as_array().unwrap();
        assert_eq!(cases.len(), 20);
        for case in cases {
            near(tail(number(case, "t"), number(case, "df")), case);
        }
        for case in golden["f_sf"].as_array().unwrap() {
            let (k, m) = (number(case, "df1"), number(case, "df2"));
            near(f_tail(number(case, "f"), k, m), case);
        }
    }

    #[test]
    fn table_values() {
        // Standard tables of t at .975.
        for (df, t) in [
            (1.0, 12.706_204_736),
            (2.0, 4.302_652_730),
            (10.0, 2.228_138_852),
            (30.0, 2.042_272_456),
            (146.0, 1.976_345_655),
        ] {
            assert!(
                (quantile_95(df) - t).abs() < 1e-7,
                "{df}: {}",
                quantile_95(df)
            );
        }
        assert!((quantile_95(f64::NAN) - 1.96).abs() < 1e-3);
        assert!((quantile_95(1e6) - 1.959_966_357).abs() < 1e-6);
    }
}
