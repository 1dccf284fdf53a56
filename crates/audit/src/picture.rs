//! Small stand-alone SVG charts for audits and attacks. Colours are inside the file, on a white ground, so that a picture can be
//! opened, printed or put on a page as it is.

use std::fmt::Write as _;

/// Where a number lies on an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By its logarithm; numbers below the low end are drawn at it.
    Log,
}

/// An axis: ends, scale, name.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Low end.
    pub low: f64,
    /// High end.
    pub high: f64,
    /// Scale.
    pub scale: Scale,
    /// What it shows.
    pub name: String,
}

impl Axis {
    /// An even axis; widened if its ends coincide or are not finite.
    pub fn linear(low: f64, high: f64, name: &str) -> Self {
        let fine = low.is_finite() && high.is_finite() && high > low;
        let (low, high) = if fine { (low, high) } else { (0.0, 1.0) };
        Self {
            low,
            high,
            scale: Scale::Linear,
            name: name.to_owned(),
        }
    }

    /// A logarithmic axis between positive ends.
    pub fn log(low: f64, high: f64, name: &str) -> Self {
        let low = if low > 0.0 { low } else { 1.0 };
        let high = if high > low { high } else { 10.0 * low };
        Self {
            low,
            high,
            scale: Scale::Log,
            name: name.to_owned(),
        }
    }

    /// Share of the way from low to high, inside [0, 1].
    fn place(&self, v: f64) -> Option<f64> {
        if v.is_nan() {
            return None;
        }
        let share = match self.scale {
            Scale::Linear => (v - self.low) / (self.high - self.low),
            Scale::Log => libm::log(v.max(self.low) / self.low) / libm::log(self.high / self.low),
        };
        Some(share.clamp(0.0, 1.0))
    }

    fn ticks(&self) -> Vec<f64> {
        let mut ticks = Vec::new();
        match self.scale {
            Scale::Linear => {
                let rough = (self.high - self.low) / 5.0;
                let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
                let step = [1.0, 2.0, 5.0, 10.0]
                    .into_iter()
                    .map(|m| m * power)
                    .find(|s| *s >= rough * 0.999)
                    .unwrap_or(10.0 * power);
                let first = libm::ceil(self.low / step - 1e-9);
                for i in 0..12 {
                    let t = (first + f64::from(i)) * step;
                    if t <= self.high + 1e-9 * step {
                        ticks.push(t);
                    }
                }
            }
            Scale::Log => {
                let mut t = libm::pow(10.0, libm::ceil(libm::log10(self.low) - 1e-9));
                while t <= self.high * 1.000_001 && ticks.len() < 12 {
                    ticks.push(t);
                    t *= 10.0;
                }
            }
        }
        ticks
    }
}

/// A number in few characters.
pub fn short(x: f64) -> String {
    if x.is_infinite() {
        return "∞".to_owned();
    }
    let size = x.abs();
    if size >= 1e5 || (size > 0.0 && size < 1e-3) {
        let text = format!("{x:.0e}");
        return text.replace('-', "−");
    }
    let text = format!("{x:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.replace('-', "−")
}

/// Text safe inside SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#222}.t{font-size:16px;font-weight:600}.s{fill:#555}\
.g{stroke:#e4e4e4;fill:none}.a{stroke:#888;fill:none}.blue{stroke:#1f5fa8;fill:none;stroke-width:2}.red{stroke:#c0392b;fill:none;stroke-width:2}\
.green{stroke:#2f8f4e;fill:none;stroke-width:2}\
.dash{stroke-dasharray:6 4}.bf{fill:#1f5fa8}.rf{fill:#c0392b}.gf{fill:#9aa3ad}.bo{fill:none;stroke:#1f5fa8;stroke-width:1.2}\
.ro{fill:none;stroke:#c0392b;stroke-width:1.6}.lf{fill:#d5e3f3}";

/// A chart under construction.
#[derive(Clone, Debug)]
pub struct Chart {
    width: f64,
    height: f64,
    top: f64,
    left: f64,
    xs: Axis,
    ys: Axis,
    title: String,
    notes: Vec<(String, String)>,
    body: String,
}

const RIGHT: f64 = 20.0;
const BOTTOM: f64 = 46.0;

impl Chart {
    /// An empty chart, 720 by 420.
    pub fn new(title: &str, xs: Axis, ys: Axis) -> Self {
        Self {
            width: 720.0,
            height: 420.0,
            top: 56.0,
            left: 64.0,
            xs,
            ys,
            title: title.to_owned(),
            notes: Vec::new(),
            body: String::new(),
        }
    }

    /// Another height, and more room on the left.
    #[must_use]
    pub fn sized(mut self, height: f64, left: f64) -> Self {
        self.height = height;
        self.left = left;
        self
    }

    fn x(&self, v: f64) -> Option<f64> {
        Some(self.left + self.xs.place(v)? * (self.width - self.left - RIGHT))
    }

    fn y(&self, v: f64) -> Option<f64> {
        Some(self.height - BOTTOM - self.ys.place(v)? * (self.height - self.top - BOTTOM))
    }

    /// A line through data points; points that are not numbers are left out.
    pub fn line(&mut self, class: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let mut d = String::new();
        for (a, b) in points {
            if let (Some(x), Some(y)) = (self.x(a), self.y(b)) {
                let _ = write!(d, "{}{x:.1} {y:.1}", if d.is_empty() { 'M' } else { 'L' });
            }
        }
        let _ = writeln!(self.body, r#"<path class="{class}" d="{d}"/>"#);
    }

    /// A circle.
    pub fn dot(&mut self, class: &str, at: (f64, f64), radius: f64) {
        if let (Some(x), Some(y)) = (self.x(at.0), self.y(at.1)) {
            let _ = writeln!(
                self.body,
                r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="{radius}"/>"#
            );
        }
    }

    /// A rectangle between two corners.
    pub fn rect(&mut self, class: &str, a: (f64, f64), b: (f64, f64)) {
        if let (Some(x0), Some(y0), Some(x1), Some(y1)) =
            (self.x(a.0), self.y(a.1), self.x(b.0), self.y(b.1))
        {
            let _ = writeln!(
                self.body,
                r#"<rect class="{class}" x="{:.1}" y="{:.1}" width="{:.1}" height="{:.1}"/>"#,
                x0.min(x1),
                y0.min(y1),
                (x1 - x0).abs().max(0.5),
                (y1 - y0).abs().max(0.5)
            );
        }
    }

    /// Text at a data point, moved by drawing units.
    pub fn label(&mut self, at: (f64, f64), by: (f64, f64), anchor: &str, text: &str) {
        if let (Some(x), Some(y)) = (self.x(at.0), self.y(at.1)) {
            let _ = writeln!(
                self.body,
                r#"<text x="{:.1}" y="{:.1}" text-anchor="{anchor}">{}</text>"#,
                x + by.0,
                y + by.1,
                escape(text)
            );
        }
    }

    /// A line of the legend: the class of its mark, and what it is.
    pub fn note(&mut self, class: &str, text: &str) {
        self.notes.push((class.to_owned(), text.to_owned()));
    }

    /// The drawing, with numbers on both axes (`rows`: none on the vertical one).
    pub fn svg(&self, rows: bool) -> String {
        let mut out = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w:.0} {h:.0}" width="{w:.0}" height="{h:.0}" role="img"><title>{t}</title><style>{STYLE}</style><rect width="{w:.0}" height="{h:.0}" fill="white"/><text class="t" x="12" y="22">{t}</text>"#,
            w = self.width,
            h = self.height,
            t = escape(&self.title),
        );
        let mut at = 14.0;
        for (class, text) in &self.notes {
            let mark = if class.contains("blue") || class.contains("red") {
                format!(r#"<path class="{class}" d="M{at} 38h18"/>"#)
            } else {
                format!(
                    r#"<circle class="{class}" cx="{:.1}" cy="38" r="5"/>"#,
                    at + 9.0
                )
            };
            let _ = write!(
                out,
                r#"{mark}<text x="{:.1}" y="42">{}</text>"#,
                at + 24.0,
                escape(text)
            );
            let letters = u32::try_from(text.chars().count()).unwrap_or(80);
            at += 42.0 + 6.6 * f64::from(letters);
        }
        let (x0, x1) = (self.left, self.width - RIGHT);
        let (y0, y1) = (self.height - BOTTOM, self.top);
        for t in self.xs.ticks() {
            if let Some(x) = self.x(t) {
                let _ = write!(
                    out,
                    r#"<path class="g" d="M{x:.1} {y0}V{y1}"/><text class="s" x="{x:.1}" y="{:.1}" text-anchor="middle">{}</text>"#,
                    y0 + 17.0,
                    short(t)
                );
            }
        }
        if !rows {
            for t in self.ys.ticks() {
                if let Some(y) = self.y(t) {
                    let _ = write!(
                        out,
                        r#"<path class="g" d="M{x0} {y:.1}H{x1}"/><text class="s" x="{:.1}" y="{:.1}" text-anchor="end">{}</text>"#,
                        x0 - 6.0,
                        y + 4.0,
                        short(t)
                    );
                }
            }
        }
        let _ = write!(
            out,
            r#"{}<path class="a" d="M{x0} {y1}V{y0}H{x1}"/><text x="{x1}" y="{:.1}" text-anchor="end">{}</text>"#,
            self.body,
            self.height - 8.0,
            escape(&self.xs.name)
        );
        if !self.ys.name.is_empty() {
            let _ = write!(
                out,
                r#"<text transform="rotate(-90 16 {m:.1})" x="16" y="{m:.1}" text-anchor="middle">{n}</text>"#,
                m = 0.5 * (y0 + y1),
                n = escape(&self.ys.name)
            );
        }
        out.push_str("</svg>\n");
        out
    }
}
