//! Attacks: what an adversary reads off a mechanism that is not private, or off an exact plot.
//!
//! * [`gptt`]: the exact loss of generalised private threshold testing;
//! * [`reconstruct`]: a histogram from noiseless comparisons with one noisy threshold;
//! * [`roc`], [`residuals`]: the one unknown record from an exact ROC curve, an exact residual plot;
//! * [`float`]: which of two values a floating-point Laplace mechanism was given;
//! * [`histogram`], [`people`]: the public data the attacks are shown on; [`show`]: each attack with its words and its picture.

pub mod float;
pub mod gptt;
pub mod histogram;
pub mod people;
pub mod reconstruct;
pub mod residuals;
pub mod roc;
pub mod show;
