//! Scores of 0/1 features against a 0/1 label, from four counts, and how far one record can move them.

use reticent_accounting::Relation;

/// How well a feature F tells the classes L apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scoring {
    /// TC: n(F=1).
    TotalCount,
    /// DC: |n(F=1,L=1) − n(F=1,L=0)|.
    DifferenceCount,
    /// PI: the larger of DC and |n(F=0,L=1) − n(F=0,L=0)|.
    PurityIndex,
    /// n times the information gain, in nats: n·I(F; L).
    InformationGain,
}

impl Scoring {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::TotalCount,
        Self::DifferenceCount,
        Self::PurityIndex,
        Self::InformationGain,
    ];

    /// The name in plans.
    pub fn name(self) -> &'static str {
        match self {
            Self::TotalCount => "total",
            Self::DifferenceCount => "difference",
            Self::PurityIndex => "purity",
            Self::InformationGain => "information",
        }
    }

    /// The score of a feature that `having` records of each class have, of `all` records of each class. Noisy counts are
    /// accepted: information gain takes them clamped to 0 ≤ having ≤ all.
    pub fn of(self, having: [f64; 2], all: [f64; 2]) -> f64 {
        let [a, b] = having;
        match self {
            Self::TotalCount => a + b,
            Self::DifferenceCount => (b - a).abs(),
            Self::PurityIndex => {
                let rest = (all[1] - b) - (all[0] - a);
                (b - a).abs().max(rest.abs())
            }
            Self::InformationGain => {
                let n = all.map(|x| x.max(0.0));
                let (a, b) = (a.max(0.0).min(n[0]), b.max(0.0).min(n[1]));
                information([a, b, n[0] - a, n[1] - b])
            }
        }
    }

    /// The most by which one record moves the score of one feature, over all tables of up to `rows` records: 1 | 1 for TC,
    /// 1 | 2 for DC and PI; for n·I over add/remove ψ(n) = (n+1)ln(n+1) − n ln n at n = rows − 1, over replace-one
    /// ln n + (n−1) ln(n/(n−1)) at n = rows (`privacy.md` §12).
    pub fn sensitivity(self, relation: Relation, rows: f64) -> f64 {
        match (self, relation) {
            (Self::TotalCount, _)
            | (Self::DifferenceCount | Self::PurityIndex, Relation::AddRemove) => 1.0,
            (Self::DifferenceCount | Self::PurityIndex, Relation::ReplaceOne) => 2.0,
            (Self::InformationGain, Relation::AddRemove) => {
                let n = (rows - 1.0).max(0.0);
                x_ln_x(n + 1.0) - x_ln_x(n)
            }
            (Self::InformationGain, Relation::ReplaceOne) if rows > 1.0 => {
                rows.ln() + (rows - 1.0) * (rows / (rows - 1.0)).ln()
            }
            (Self::InformationGain, Relation::ReplaceOne) => 0.0,
        }
    }

    /// The L1 distance that one record can move the scores of all `features` together, a record having at most `most`:
    /// TC and DC move only for features it has (s | 2s), PI and n·I for every feature.
    pub fn joint_sensitivity(
        self,
        relation: Relation,
        most: u32,
        features: usize,
        rows: f64,
    ) -> f64 {
        let touched = match relation {
            Relation::AddRemove => 1.0,
            Relation::ReplaceOne => 2.0,
        };
        match self {
            Self::TotalCount | Self::DifferenceCount => touched * f64::from(most),
            Self::PurityIndex | Self::InformationGain => {
                crate::common::size(features) * self.sensitivity(relation, rows)
            }
        }
    }
}

fn x_ln_x(x: f64) -> f64 {
    if x > 0.0 { x * x.ln() } else { 0.0 }
}

/// n·I of a 2×2 table, in nats: Σ x ln x over cells − margins + n ln n.
fn information(cells: [f64; 4]) -> f64 {
    let [a, b, c, d] = cells;
    let margins = [a + b, c + d, a + c, b + d].map(x_ln_x);
    let inner: f64 = cells.map(x_ln_x).iter().sum();
    (inner - margins.iter().sum::<f64>() + x_ln_x(a + b + c + d)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_by_hand() {
        let of = |s: Scoring| s.of([3.0, 8.0], [20.0, 10.0]);
        assert_eq!(of(Scoring::TotalCount).to_bits(), 11.0f64.to_bits());
        assert_eq!(of(Scoring::DifferenceCount).to_bits(), 5.0f64.to_bits());
        assert_eq!(of(Scoring::PurityIndex).to_bits(), 15.0f64.to_bits());
        // n (H(L) − H(L|F)), term by term
        let h = |p: f64, q: f64| -(p / (p + q)).ln() * p - (q / (p + q)).ln() * q;
        let want = h(20.0, 10.0) - h(3.0, 8.0) - h(17.0, 2.0);
        assert!((of(Scoring::InformationGain) - want).abs() < 1e-12);
        // noise may take counts anywhere
        for a in [-9.0, 0.0, 1e9] {
            for s in Scoring::ALL {
                assert!(s.of([a, -a], [-3.0, 0.0]).is_finite());
            }
        }
    }

    /// Every 2×2 table of up to 9 records and every neighbour: the stated sensitivities are reached, never passed.
    #[test]
    fn sensitivities_are_exact() {
        let n = 9usize;
        let mut tables = Vec::new();
        for a in 0..=n {
            for b in 0..=n - a {
                for c in 0..=n - a - b {
                    tables.extend((0..=n - a - b - c).map(|d| [a, b, c, d]));
                }
            }
        }
        let score = |s: Scoring, t: [usize; 4]| {
            let [a, b, c, d] = t.map(crate::common::size);
            s.of([a, b], [a + c, b + d])
        };
        for s in Scoring::ALL {
            let mut worst = [0.0f64; 2];
            for t in &tables {
                let total: usize = t.iter().sum();
                for to in 0..4 {
                    let mut more = *t;
                    more[to] += 1;
                    if total < n {
                        worst[0] = worst[0].max((score(s, more) - score(s, *t)).abs());
                    }
                    for from in 0..4 {
                        let mut other = more;
                        if other[from] > 0 {
                            other[from] -= 1;
                            worst[1] = worst[1].max((score(s, other) - score(s, *t)).abs());
                        }
                    }
                }
            }
            let rows = crate::common::size(n);
            let stated =
                [Relation::AddRemove, Relation::ReplaceOne].map(|r| s.sensitivity(r, rows));
            for (w, s) in worst.iter().zip(stated) {
                assert!((w - s).abs() < 1e-9, "{worst:?} {stated:?}");
            }
        }
        let ig = |r, n| Scoring::InformationGain.sensitivity(r, n);
        assert!((ig(Relation::AddRemove, 21.0) - 4.0203).abs() < 1e-4);
        assert!((ig(Relation::ReplaceOne, 20.0) - 3.9703).abs() < 1e-4);
    }

    /// A record whose label flips moves the purity index of every feature it does not have by 2, whatever s is.
    #[test]
    fn purity_moves_for_every_feature() {
        let joint = Scoring::PurityIndex.joint_sensitivity(Relation::ReplaceOne, 20, 5000, 1e4);
        assert_eq!(joint.to_bits(), 1e4f64.to_bits());
        let moved = Scoring::PurityIndex.of([0.0, 0.0], [9.0, 3.0])
            - Scoring::PurityIndex.of([0.0, 0.0], [8.0, 4.0]);
        assert_eq!(moved.to_bits(), 2.0f64.to_bits());
    }
}
