//! Small scatter plots side by side, as one SVG: the papers' figures that are pictures.

use std::fmt::Write as _;

use std::path::PathBuf;

use reticent_audit::picture::{escape, short};

use crate::study::StudyError;

/// Most points drawn in a panel; of more, every k-th.
const MOST: usize = 500;
const WIDTH: f64 = 230.0;
const HEIGHT: f64 = 170.0;
const LEFT: f64 = 44.0;
const TOP: f64 = 24.0;
const GAP: f64 = 12.0;
const HEAD: f64 = 34.0;
const FOOT: f64 = 22.0;

const STYLE: &str = "<style>svg{background:#fff}text{font:11px system-ui,sans-serif;fill:#333}.t{font-size:14px;font-weight:600}\
.f{fill:none;stroke:#bbb}.z{stroke:#ccc;stroke-dasharray:4 3}.p{stroke:#1f5fa8;stroke-width:2.4;stroke-linecap:round;stroke-opacity:.55}\
.l{stroke:#9aa3ad;stroke-width:1.2;fill:none}.b{stroke:#1f5fa8;stroke-width:1.3}\
@media(prefers-color-scheme:dark){svg{background:#16191d}text{fill:#d6d9dd}.f{stroke:#555}.z{stroke:#444}.p{stroke:#6fb1ff}.l{stroke:#7b848f}.b{stroke:#6fb1ff}}</style>";

/// One scatter plot.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// What stands above it.
    pub title: String,
    /// Range of the horizontal axis.
    pub x: (f64, f64),
    /// Range of the vertical axis; a line is drawn at 0.
    pub y: (f64, f64),
    /// The points; those outside are left out and counted in the title.
    pub points: Vec<[f64; 2]>,
    /// Limits ± around 0 at increasing places.
    pub limits: Vec<[f64; 2]>,
    /// Upright lines: place, lower and upper end, both cut to the vertical axis.
    pub ranges: Vec<[f64; 3]>,
}

/// The folder of `RETICENT_PICTURES`, into which studies write their pictures; without it they write none.
pub struct Pictures(Option<PathBuf>);

impl Pictures {
    /// From the environment.
    pub fn from_env() -> Self {
        Self(std::env::var_os("RETICENT_PICTURES").map(PathBuf::from))
    }

    /// Writes a file of panels.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(
        &self,
        name: &str,
        title: &str,
        about: &str,
        columns: usize,
        panels: &[Panel],
    ) -> Result<(), StudyError> {
        let Some(folder) = &self.0 else {
            return Ok(());
        };
        std::fs::write(folder.join(name), svg(title, about, columns, panels))
            .map_err(StudyError::release)
    }
}

impl Panel {
    fn place(&self, [x, y]: [f64; 2]) -> Option<(f64, f64)> {
        let share = |v: f64, (low, high): (f64, f64)| {
            let s = (v - low) / (high - low);
            (0.0..=1.0).contains(&s).then_some(s)
        };
        Some((
            LEFT + share(x, self.x)? * (WIDTH - LEFT),
            TOP + (1.0 - share(y, self.y)?) * (HEIGHT - TOP - FOOT),
        ))
    }

    fn draw(&self, out: &mut String) {
        if self.x.0 >= self.x.1 {
            return; // an empty place
        }
        let inside = self.points.iter().filter_map(|p| self.place(*p));
        let step = self.points.len().div_ceil(MOST).max(1);
        let mut dots = String::new();
        for (x, y) in inside.clone().step_by(step) {
            let _ = write!(dots, "M{x:.1} {y:.1}h0");
        }
        let outside = self.points.len() - inside.count();
        let more = if outside == 0 {
            String::new()
        } else {
            format!(", {outside} out")
        };
        let bottom = HEIGHT - FOOT;
        let _ = write!(
            out,
            "<text x=\"{LEFT}\" y=\"{}\">{}{more}</text><rect class=\"f\" x=\"{LEFT}\" y=\"{TOP}\" width=\"{}\" height=\"{}\"/>",
            TOP - 7.0,
            escape(&self.title),
            WIDTH - LEFT,
            bottom - TOP
        );
        if let Some((_, zero)) = self.place([self.x.0, 0.0]) {
            let _ = write!(out, "<path class=\"z\" d=\"M{LEFT} {zero:.1}H{WIDTH}\"/>");
        }
        for sign in [1.0, -1.0] {
            let line: Vec<String> = (self.limits.iter())
                .filter_map(|[x, y]| self.place([*x, sign * y]))
                .map(|(x, y)| format!("{x:.1} {y:.1}"))
                .collect();
            if line.len() > 1 {
                let _ = write!(out, "<path class=\"l\" d=\"M{}\"/>", line.join("L"));
            }
        }
        let _ = write!(out, "<path class=\"p\" d=\"{dots}\"/>");
        let mut bars = String::new();
        let ends = |r: &[f64; 3]| {
            let cut = |y: f64| self.place([r[0], y.clamp(self.y.0, self.y.1)]);
            Some((cut(r[1])?, cut(r[2])?))
        };
        for ((x, low), (_, high)) in self.ranges.iter().filter_map(ends) {
            // a range of one value is still a dot
            let _ = write!(bars, "M{x:.1} {:.1}V{high:.1}", low + 0.5);
        }
        if !bars.is_empty() {
            let _ = write!(out, "<path class=\"b\" d=\"{bars}\"/>");
        }
        for (value, at) in [(self.y.1, TOP + 9.0), (self.y.0, bottom)] {
            let _ = write!(
                out,
                "<text text-anchor=\"end\" x=\"{}\" y=\"{at}\">{}</text>",
                LEFT - 5.0,
                short(three(value))
            );
        }
        for (value, at, anchor) in [(self.x.0, LEFT, "start"), (self.x.1, WIDTH, "end")] {
            let _ = write!(
                out,
                "<text text-anchor=\"{anchor}\" x=\"{at}\" y=\"{}\">{}</text>",
                bottom + 14.0,
                short(three(value))
            );
        }
    }
}

/// Three significant digits.
fn three(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// Panels row by row under a title. `about` is the text for those who do not see the picture.
pub fn svg(title: &str, about: &str, columns: usize, panels: &[Panel]) -> String {
    let columns = columns.max(1);
    let rows = panels.len().div_ceil(columns);
    let size = |count: usize, each: f64| crate::real(count) * (each + GAP) + GAP;
    let (width, height) = (size(columns, WIDTH), HEAD + size(rows, HEIGHT));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\"><title>{}</title><desc>{}</desc>{STYLE}<text class=\"t\" x=\"{GAP}\" y=\"22\">{}</text>",
        escape(title),
        escape(about),
        escape(title)
    );
    for (i, panel) in panels.iter().enumerate() {
        let x = GAP + crate::real(i % columns) * (WIDTH + GAP);
        let y = HEAD + crate::real(i / columns) * (HEIGHT + GAP);
        let _ = write!(out, "<g transform=\"translate({x} {y})\">");
        panel.draw(&mut out);
        out.push_str("</g>");
    }
    out.push_str("</svg>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_outside_are_counted_and_texts_escaped() {
        let panel = Panel {
            title: "a < b".to_owned(),
            x: (0.0, 1.0),
            y: (-1.0, 1.0),
            points: vec![[0.5, 0.0], [0.25, 9.0], [0.5, f64::NAN]],
            limits: vec![[0.0, 0.5], [1.0, 0.25]],
            ranges: vec![[0.5, -7.0, 0.0]],
        };
        let text = svg("t", "d", 3, &[panel.clone(), panel]);
        assert_eq!(text.matches("a &lt; b, 2 out").count(), 2);
        assert_eq!(text.matches("<g ").count(), text.matches("</g>").count());
        // One dot in the middle of each panel, at the height of 0.
        let middle = f64::midpoint(TOP, HEIGHT - FOOT);
        let dot = format!("d=\"M{:.1} {middle:.1}h0\"", f64::midpoint(LEFT, WIDTH));
        assert_eq!(text.matches(&dot).count(), 2);
        assert_eq!(text.matches("class=\"l\"").count(), 4);
        // from the lower end of the axis to its middle
        let (low, x) = (HEIGHT - FOOT + 0.5, f64::midpoint(LEFT, WIDTH));
        let bar = format!("d=\"M{x:.1} {low:.1}V{middle:.1}\"");
        assert_eq!(text.matches(&bar).count(), 2);
    }
}
