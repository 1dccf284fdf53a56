//! From kinds to mechanisms.
use crate::model::Model;
use crate::outcome::Refusal;
use crate::resolve::{Entry, Resolved};
use reticent_mechanisms::program::Expr;
use reticent_mechanisms::{Context, Mechanism};
pub struct Prepared {
    pub terms: Vec<Expr>,
    pub mechanism: Box<dyn Mechanism>,
}
pub(crate) fn accuracy(_: &Resolved, _: &Entry, _: Option<u64>) -> Option<String> {
    None
}
pub(crate) fn blank_model(_: &Resolved, _: &Entry) -> Result<Model, Refusal> {
    Err(Refusal::request("x"))
}
pub(crate) fn prepare(
    _: &Resolved,
    _: &Entry,
    _: &Context,
    _: Option<f64>,
    _: Option<&Model>,
) -> Result<Prepared, Refusal> {
    Err(Refusal::request("x"))
}
