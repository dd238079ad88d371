//! `lockstead features`: what this machine offers.
pub(crate) fn run(_flags: &crate::args::Features) -> Result<(), crate::failure::Failure> {
    Ok(())
}
