//! The two ways to estimate a job's window, for experiments that compare them.

use crate::model::published::{ALPHA, TOLERANCE};
use crate::model::trial::Manager;
use vellum_workset::{Control, Criterion, Demand, Estimator, EstimatorError, Owe, Quanta, Ticks};

/// How a job's knee is estimated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Estimation {
    /// By the source's controller ([`Owe`]), with its α.
    Source {
        /// What it takes for a small difference, in pages: [`Owe::tolerating`].
        tolerance: u32,
    },
    /// By the controller that remembers ([`Control`]).
    Remembering,
}

impl Estimation {
    /// By the source's controller as its Table 1 shows it.
    pub const SOURCE: Self = Self::Source { tolerance: TOLERANCE };

    /// A manager that minimises the criterion's product at `delay` ticks a fault, sampled every `delta`. It
    /// begins with `window` and goes up to `window_max`.
    ///
    /// # Errors
    /// [`EstimatorError`] for a delay or interval without meaning.
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
