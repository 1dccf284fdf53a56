//! Predictions on SMS and tweets by a plain model: ridge logistic regression on the presence of words, without privacy.

use reticent_laws::Seeded;
use reticent_noise::Noise;

use super::bench::{Bench, SEED};
use crate::real;
use crate::studies::empirical_ml::{Texts, pair};
use crate::study::StudyError;

/// Weight of half the squared length of the coefficients.
const RIDGE: f64 = 1e-3;
const STEPS: u32 = 300;

/// Test predictions of both sets, with the thesis's numbers of positives and negatives: 481 and 77, 385 and 299.
pub(super) fn predictions() -> Result<Vec<Bench>, StudyError> {
    let sizes = [[77, 481], [299, 385]];
    let names = ["SMS", "Twitter"];
    Ok(pair()?
        .iter()
        .zip(sizes)
        .zip(names)
        .map(|((texts, sizes), name)| Bench::new(name, &scored(texts, sizes)))
        .collect())
}

/// A shuffled test part with so many records of each label, scored by a model of the others.
fn scored(texts: &Texts, mut wanted: [usize; 2]) -> Vec<[f64; 2]> {
    let records: Vec<(usize, &[usize])> = texts.labelled_words().collect();
    let mut noise = Seeded::new(SEED + 90);
    let mut order: Vec<(u64, usize)> = (0..records.len()).map(|i| (noise.bits(), i)).collect();
    order.sort_unstable();
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (_, i) in order {
        let record = records[i];
        if wanted[record.0] > 0 {
            wanted[record.0] -= 1;
            test.push(record);
        } else {
            train.push(record);
        }
    }
    let words = records.iter().flat_map(|r| r.1).max().map_or(0, |w| w + 1);
    let model = fit(&train, words);
    test.iter()
        .map(|r| [score(&model, r.1).clamp(-30.0, 30.0), real(r.0)])
        .collect()
}

/// Coefficients, the intercept last.
fn score(model: &[f64], words: &[usize]) -> f64 {
    model[model.len() - 1] + words.iter().map(|w| model[*w]).sum::<f64>()
}

/// Accelerated gradient descent on the mean loss plus the ridge.
fn fit(train: &[(usize, &[usize])], words: usize) -> Vec<f64> {
    let n = real(train.len());
    // A quarter of the largest squared length bounds the curvature.
    let longest = train.iter().map(|r| r.1.len() + 1).max().unwrap_or(1);
    let step = 1.0 / (0.25 * real(longest) + RIDGE);
    let mut model = vec![0.0; words + 1];
    let mut ahead = model.clone();
    for k in 0..STEPS {
        let mut gradient: Vec<f64> = ahead.iter().map(|b| RIDGE * b).collect();
        gradient[words] = 0.0;
        for (label, present) in train {
            let p = 1.0 / (1.0 + (-score(&ahead, present)).exp());
            let g = (p - real(*label)) / n;
            gradient[words] += g;
            present.iter().for_each(|w| gradient[*w] += g);
        }
        let next: Vec<f64> = ahead
            .iter()
            .zip(&gradient)
            .map(|(b, g)| b - step * g)
            .collect();
        let momentum = f64::from(k) / f64::from(k + 3);
        ahead = next
            .iter()
            .zip(&model)
            .map(|(a, b)| a + momentum * (a - b))
            .collect();
        model = next;
    }
    model
}
