//! A small SVG writer for charts: axes with round ticks, shapes in data coordinates, a title and a description.
//!
//! Colours come from CSS classes of the page, so one drawing serves light, dark and printed pages. Every coordinate
//! passes through [`Plot::x`] and [`Plot::y`], which clamp to the frame; a point that is not finite is left out.

use std::fmt::Write as _;

use super::html::escape;
use super::words;

/// A polyline of more points than this is thinned to what can be seen.
const MOST_POINTS: usize = 5000;

/// A range of values and the ticks on it.
#[derive(Debug, Clone)]
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    step: f64,
}

impl Axis {
    /// An axis that holds all finite `values` and ends on ticks.
    pub(super) fn around(values: impl IntoIterator<Item = f64>, target: f64) -> Axis {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for v in values
            .into_iter()
            .filter(|v| v.is_finite() && v.abs() < 1e300)
        {
            low = low.min(v);
            high = high.max(v);
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if high - low <= 1e-9 * low.abs().max(high.abs()) {
            let pad = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
            (low, high) = (low - pad, high + pad);
        }
        let step = round_step((high - low) / target);
        Axis {
            low: (low / step).floor() * step,
            high: (high / step).ceil() * step,
            step,
        }
    }

    /// An axis with exactly these ends (a released box, the unit interval); around ten per cent if they coincide.
    pub(super) fn exact(low: f64, high: f64, target: f64) -> Axis {
        if low.is_finite()
            && high.is_finite()
            && high - low > 1e-9 * low.abs().max(high.abs())
            && high - low < 1e300
        {
            Axis {
                low,
                high,
                step: round_step((high - low) / target),
            }
        } else {
            Axis::around([low, high], target)
        }
    }

    /// Tick positions, at most some forty of them.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let first = (self.low / self.step - 1e-9).ceil();
        (0..40)
            .map(|i| (first + f64::from(i)) * self.step)
            .take_while(|t| *t <= self.high + self.step * 1e-9)
            .map(|t| if t.abs() < self.step * 1e-9 { 0.0 } else { t })
            .collect()
    }

    /// Tick text, with one unit (thousands, millions, billions) for the whole axis.
    pub(super) fn label(&self, tick: f64) -> String {
        let size = self.low.abs().max(self.high.abs());
        if tick == 0.0 {
            return "0".to_owned();
        }
        if !(1e-3..1e12).contains(&size) {
            return words::scientific(tick, 3);
        }
        let (unit, suffix) = match size {
            s if s >= 1e9 => (1e9, "G"),
            s if s >= 1e6 => (1e6, "M"),
            s if s >= 1e4 => (1e3, "k"),
            _ => (1.0, ""),
        };
        let decimals = usize::try_from(-words::exponent(self.step / unit * 1.000_001)).unwrap_or(0);
        // 0.25 and 2.5 need one more place than their power of ten.
        let scaled = self.step / unit * 10_f64.powi(i32::try_from(decimals).unwrap_or(0));
        let decimals = decimals + usize::from((scaled - scaled.round()).abs() > 1e-6);
        format!("{}{suffix}", words::fixed(tick / unit, decimals))
    }

    fn place(&self, v: f64) -> Option<f64> {
        // Also right for an axis that runs downwards.
        let share = (v - self.low) / (self.high - self.low);
        (v.is_finite() && share.is_finite()).then(|| share.clamp(0.0, 1.0))
    }
}

/// The next of 1, 2, 2.5, 5 × 10ᵏ at or above `x`.
fn round_step(x: f64) -> f64 {
    if !(x.is_finite() && x > 0.0) {
        return 1.0;
    }
    let power = 10_f64.powi(words::exponent(x).clamp(-300, 300));
    [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|s| *s >= x * (1.0 - 1e-9))
        .unwrap_or(10.0 * power)
}

/// Which grid lines and labels an axis gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ticks {
    /// Lines and numbers.
    Numbers,
    /// Nothing: the caller writes its own labels.
    None,
}

/// A chart under construction.
#[derive(Debug)]
pub(super) struct Plot {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    pub(super) xs: Axis,
    pub(super) ys: Axis,
    body: String,
}

impl Plot {
    /// A chart with the usual margins, `height` units tall.
    pub(super) fn new(xs: Axis, ys: Axis, height: f64) -> Plot {
        Plot {
            width: 460.0,
            height,
            left: 54.0,
            right: 12.0,
            top: 30.0,
            bottom: 44.0,
            xs,
            ys,
            body: String::new(),
        }
    }

    /// Horizontal position; `None` for what is not finite.
    pub(super) fn x(&self, v: f64) -> Option<f64> {
        Some(self.left + self.xs.place(v)? * (self.width - self.left - self.right))
    }

    /// Vertical position; `None` for what is not finite.
    pub(super) fn y(&self, v: f64) -> Option<f64> {
        Some(self.height - self.bottom - self.ys.place(v)? * (self.height - self.top - self.bottom))
    }

    /// Raw markup in drawing units.
    pub(super) fn raw(&mut self, markup: &str) {
        self.body.push_str(markup);
    }

    /// A polyline through data points. Of very many, those remain that differ when drawn.
    pub(super) fn line(&mut self, class: &str, points: &[(f64, f64)]) {
        let d = if points.len() > MOST_POINTS {
            self.path(self.visible(points).into_iter())
        } else {
            self.path(points.iter().copied())
        };
        if !d.is_empty() {
            let _ = write!(self.body, r#"<path class="{class}" d="{d}"/>"#);
        }
    }

    /// The area between two polylines with common x.
    pub(super) fn area(&mut self, class: &str, low: &[(f64, f64)], high: &[(f64, f64)]) {
        let d = self.path(low.iter().copied().chain(high.iter().rev().copied()));
        if !d.is_empty() {
            let _ = write!(self.body, r#"<path class="{class}" d="{d}Z"/>"#);
        }
    }

    /// First, lowest, highest and last of each run of points that share half a pixel's width.
    fn visible(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let drawn: Vec<(f64, f64)> = points
            .iter()
            .copied()
            .filter(|(x, y)| self.x(*x).is_some() && self.y(*y).is_some())
            .collect();
        let place = |p: &(f64, f64)| self.x(p.0).map(|px| (2.0 * px).floor());
        drawn
            .chunk_by(|a, b| place(a) == place(b))
            .flat_map(|run| {
                let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
                [
                    run.first(),
                    run.iter().min_by(by_height),
                    run.iter().max_by(by_height),
                    run.last(),
                ]
            })
            .flatten()
            .copied()
            .collect()
    }

    fn path(&self, points: impl Iterator<Item = (f64, f64)>) -> String {
        let mut d = String::new();
        for (x, y) in points {
            if let (Some(px), Some(py)) = (self.x(x), self.y(y)) {
                let _ = write!(d, "{}{px:.1} {py:.1}", if d.is_empty() { 'M' } else { 'L' });
            }
        }
        d
    }

    /// A rectangle given by two corners in data coordinates.
    pub(super) fn rect(&mut self, class: &str, a: (f64, f64), b: (f64, f64)) {
        if let (Some(x0), Some(y0), Some(x1), Some(y1)) =
            (self.x(a.0), self.y(a.1), self.x(b.0), self.y(b.1))
        {
            let (x, y) = (x0.min(x1), y0.min(y1));
            let (w, h) = ((x1 - x0).abs(), (y1 - y0).abs());
            let _ = write!(
                self.body,
                r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{w:.1}" height="{h:.1}"/>"#
            );
        }
    }

    /// A circle of radius `r` drawing units.
    pub(super) fn circle(&mut self, class: &str, at: (f64, f64), r: f64) {
        if let (Some(x), Some(y), true) = (self.x(at.0), self.y(at.1), r.is_finite()) {
            let _ = write!(
                self.body,
                r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{r:.1}"/>"#
            );
        }
    }

    /// Many small dots; a few translucent layers let dense places look darker.
    pub(super) fn dots(&mut self, class: &str, points: &[(f64, f64)]) {
        const LAYERS: usize = 5;
        for layer in 0..LAYERS {
            let mut d = String::new();
            for (x, y) in points.iter().skip(layer).step_by(LAYERS) {
                if let (Some(px), Some(py)) = (self.x(*x), self.y(*y)) {
                    let _ = write!(d, "M{px:.1} {py:.1}h0");
                }
            }
            if !d.is_empty() {
                let _ = write!(self.body, r#"<path class="{class}" d="{d}"/>"#);
            }
        }
    }

    /// A horizontal reference line.
    pub(super) fn across(&mut self, class: &str, y: f64) {
        self.line(class, &[(self.xs.low, y), (self.xs.high, y)]);
    }

    /// A vertical reference line.
    pub(super) fn upright(&mut self, class: &str, x: f64) {
        self.line(class, &[(x, self.ys.low), (x, self.ys.high)]);
    }

    /// Text in drawing units; `anchor` is start, middle or end.
    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, anchor: &str, text: &str) {
        let _ = write!(
            self.body,
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{}</text>"#,
            escape(text)
        );
    }

    /// The finished drawing. `key` makes the ids of title and description unique on the page.
    pub(super) fn finish(
        self,
        key: &str,
        words: &Words<'_>,
        x_ticks: Ticks,
        y_ticks: Ticks,
    ) -> String {
        let (x0, x1) = (self.left, self.width - self.right);
        let (y0, y1) = (self.height - self.bottom, self.top);
        let mut frame = String::new();
        let mut labels = String::new();
        if x_ticks == Ticks::Numbers {
            for t in self.xs.ticks() {
                if let Some(x) = self.x(t) {
                    let _ = write!(frame, r#"<path class="grid" d="M{x:.1} {y0:.1}V{y1:.1}"/>"#);
                    let label = self.xs.label(t);
                    // A label at the very edge would be cut off; it is pulled inside.
                    let half = 3.6 * words::as_f64(label.chars().count());
                    let at = x.min(self.width - half - 1.0).max(half + 1.0);
                    let _ = write!(
                        labels,
                        r#"<text class="tick" x="{at:.1}" y="{:.1}" text-anchor="middle">{label}</text>"#,
                        y0 + 16.0
                    );
                }
            }
        }
        if y_ticks == Ticks::Numbers {
            for t in self.ys.ticks() {
                if let Some(y) = self.y(t) {
                    let _ = write!(frame, r#"<path class="grid" d="M{x0:.1} {y:.1}H{x1:.1}"/>"#);
                    let _ = write!(
                        labels,
                        r#"<text class="tick" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                        x0 - 7.0,
                        y + 4.0,
                        self.ys.label(t)
                    );
                }
            }
        }
        let _ = write!(
            labels,
            r#"<path class="axis" d="M{x0:.1} {y1:.1}V{y0:.1}H{x1:.1}"/>"#
        );
        if !words.x.is_empty() {
            let _ = write!(
                labels,
                r#"<text class="name" x="{x1:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                self.height - 7.0,
                escape(&shorten(words.x, 62))
            );
        }
        if !words.y.is_empty() {
            let _ = write!(
                labels,
                r#"<text class="name" x="2" y="14" text-anchor="start">{}</text>"#,
                escape(&shorten(words.y, 62))
            );
        }
        format!(
            r#"<svg viewBox="0 0 {:.0} {:.0}" role="img" aria-labelledby="t-{key} d-{key}"><title id="t-{key}">{}</title><desc id="d-{key}">{}</desc>{frame}{}{labels}</svg>"#,
            self.width,
            self.height,
            escape(words.title),
            escape(words.description),
            self.body
        )
    }
}

/// The words of a chart.
#[derive(Debug)]
pub(super) struct Words<'a> {
    pub(super) title: &'a str,
    pub(super) description: &'a str,
    pub(super) x: &'a str,
    pub(super) y: &'a str,
}

/// At most `most` characters, with the middle left out: the ends of term names tell them apart.
pub(super) fn squeeze(text: &str, most: usize) -> String {
    let n = text.chars().count();
    if n <= most {
        return text.to_owned();
    }
    let head = most * 2 / 5;
    let tail = most.saturating_sub(head + 1);
    text.chars()
        .take(head)
        .chain(['…'])
        .chain(text.chars().skip(n - tail))
        .collect()
}

/// At most `most` characters, with an ellipsis where something was left out.
pub(super) fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars()
        .take(most.saturating_sub(1))
        .chain(['…'])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_labelled() {
        let a = Axis::around([0.0, 97.0], 5.0);
        assert_eq!(a.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        let a = Axis::exact(0.0, 1.0, 5.0);
        assert_eq!(
            a.ticks().iter().map(|t| a.label(*t)).collect::<Vec<_>>(),
            ["0", "0.2", "0.4", "0.6", "0.8", "1.0"]
        );
        let a = Axis::around([-120_000.0, 480_000.0], 5.0);
        assert!(a.ticks().iter().any(|t| a.label(*t) == "−200k"), "{a:?}");
        let a = Axis::exact(0.0, 1.0, 4.0);
        assert_eq!(a.label(0.25), "0.25");
    }

    #[test]
    fn odd_ranges_do_not_panic() {
        for v in [
            vec![],
            vec![f64::NAN],
            vec![f64::INFINITY, 1.0],
            vec![5.0],
            vec![0.0, 0.0],
            vec![1e308, -1e308],
            vec![1e-320],
        ] {
            let a = Axis::around(v.clone(), 5.0);
            assert!(
                a.low < a.high && a.low.is_finite() && a.high.is_finite(),
                "{v:?} {a:?}"
            );
            assert!(a.ticks().len() <= 40);
            for t in a.ticks() {
                assert!(!a.label(t).is_empty());
            }
        }
        let a = Axis::exact(f64::NAN, 1.0, 5.0);
        assert!(a.low < a.high);
    }

    #[test]
    fn text_is_escaped_and_shortened() {
        let mut p = Plot::new(
            Axis::exact(0.0, 1.0, 5.0),
            Axis::exact(0.0, 1.0, 5.0),
            200.0,
        );
        p.text("note", 0.0, 0.0, "start", "<script>");
        p.line("line", &[(0.0, f64::NAN), (0.5, 0.5)]);
        let s = p.finish(
            "1",
            &Words {
                title: "a<b",
                description: "&",
                x: "x",
                y: "y",
            },
            Ticks::Numbers,
            Ticks::Numbers,
        );
        assert!(s.contains("&lt;script&gt;") && s.contains("a&lt;b") && !s.contains("NaN"));
        assert_eq!(shorten("abcdef", 4), "abc…");
        assert_eq!(squeeze("abcdefghijkl", 10), "abcd…hijkl");
        assert_eq!(squeeze("abc", 10), "abc");
    }
}
