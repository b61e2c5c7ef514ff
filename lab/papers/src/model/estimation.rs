//! The two ways to estimate a job's window (Nishigaki's and Vellum's), for experiments that compare them.

use crate::model::estimators::{Control, Estimator, EstimatorError, Owe, Quanta};
use crate::model::published::{ALPHA, TOLERANCE};
use crate::model::trial::Manager;
use vellum_workset::{Criterion, Demand, Ticks};

/// The way a job's knee is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Estimation {
    /// By the paper's controller ([`Owe`]), with its α.
    Source {
        /// The difference that it ignores as small, in pages: [`Owe::tolerating`].
        tolerance: u32,
    },
    /// By the controller that stores the curve ([`Control`]).
    Remembering,
}

impl Estimation {
    /// The paper's controller with the tolerance that reproduces its Table 1.
    pub const SOURCE: Self = Self::Source { tolerance: TOLERANCE };

    /// A manager that minimises the criterion's product at `delay` ticks per fault, sampled every `delta`.
    /// Its first window is `window` and its largest `window_max`.
    ///
    /// # Errors
    /// [`EstimatorError`] for an invalid delay or interval.
    pub fn manager(
        self,
        criterion: Criterion,
        delta: Ticks,
        delay: f64,
        window: Quanta,
        window_max: Quanta,
    ) -> Result<Manager, EstimatorError> {
        let estimator = Estimator::new(ALPHA, delta, delay)?;
        Ok(match self {
            Self::Source { tolerance } => {
                let owe = Owe::new(estimator, criterion, window, window_max);
                Manager::Owe(Box::new(owe.tolerating(f64::from(tolerance))))
            }
            Self::Remembering => {
                let demand = Demand::uncapped(criterion, delay);
                Manager::Control(Box::new(Control::new(delta, demand, window, window_max)))
            }
        })
    }
}
