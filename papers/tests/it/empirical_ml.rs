//! The study of texts in short form, and its pieces on texts that need no download.

use reticent_papers::studies::empirical_ml::{How, Texts, Way, accuracy, f1, run};
use reticent_papers::study::Form;
use reticent_statistics::features::{Keep, Method, Scoring};

/// Texts of eight of two hundred words, whose first word tells the class nine times in ten.
fn made() -> Texts {
    let records = (0..4000u32)
        .map(|i| {
            let label = i % 2;
            let tell = if i % 20 < 2 { 1 - label } else { label };
            let rest: Vec<String> = (0..7u32)
                .map(|j| {
                    format!(
                        "w{}",
                        i.wrapping_mul(2_654_435_761).rotate_left(j * 5) % 200
                    )
                })
                .collect();
            (label, format!("tell{tell} {}", rest.join(" ")))
        })
        .collect();
    Texts::new("made", ["zero", "one"], records)
}

/// Fixed seeds. Nine in ten is what the texts allow; one half is guessing.
#[test]
fn selection_finds_the_telling_words() {
    let texts = made();
    let way = |how, epsilon| Way {
        how,
        most: 20,
        epsilon,
    };
    let free = How::Free(Scoring::DifferenceCount, Keep::Top(2));
    let own = How::Select(Scoring::DifferenceCount, Method::Counts, Keep::Top(2), 50);
    for (how, epsilon) in [(How::All, None), (free, Some(100)), (own, Some(100))] {
        let a = accuracy(&texts, way(how, epsilon), 1).unwrap();
        assert!((a - 0.9).abs() < 0.02, "{how:?}: {a}");
    }
    let found = f1(&texts, 1000.0, Method::Counts, 100, 3).unwrap();
    assert!((found - 1.0).abs() < 1e-12, "{found}");
}

/// The study on texts of its own.
#[test]
fn figures_in_short_form() {
    let findings = run(Form::Quick).unwrap();
    assert!(findings.met(), "{findings}");
}
