//! SIGINT and SIGTERM end a measurement in order: its files are removed.

use crate::failure::Failure;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Set by the first SIGINT or SIGTERM.
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From here on the first signal sets the flag. A second one ends the
    /// process at once: a lock under test may hang.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub(crate) fn install() -> Result<Self, Failure> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 130, flag.clone())
                .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
                .map_err(|error| {
                    Failure::Run(format!("cannot install a handler for signal {signal}: {error}"))
                })?;
        }
        Ok(Interrupt(flag))
    }

    /// The flag, for those who poll it.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.0
    }
}
