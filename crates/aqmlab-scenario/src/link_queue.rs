//! A link's queue as every host builds it.

use aqmlab_params::ParamError;
use aqmlab_qdisc::{Arrived, Discipline, Registry};
use aqmlab_random::Stream;

use crate::faults::FaultInjector;
use crate::plan::LinkPlan;

impl LinkPlan {
    /// Builds the link's discipline with its faults. The discipline draws from the stream that is
    /// named after the link and the discipline.
    ///
    /// # Errors
    /// If the registry has no such discipline, or if a user-defined discipline refuses the
    /// parameters.
    pub fn discipline<P: Arrived + Send + 'static>(
        &self,
        seed: u64,
        registry: &Registry<P>,
    ) -> Result<Discipline<P>, ParamError> {
        let draws = Stream::new(seed, format_args!("{}/{}", self.name, self.queue.kind()));
        let discipline = registry.build(&self.queue, draws)?;
        if self.faults.drop.is_empty() && self.faults.mark.is_empty() {
            return Ok(discipline);
        }
        Ok(Discipline::Custom(Box::new(FaultInjector::new(discipline, &self.faults))))
    }
}
