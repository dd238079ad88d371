//! The reference of the JSON reports of `lockstead` is what their types say.

use crate::diff::DiffReport;
use crate::features::FeaturesReport;
use crate::oncpu::OncpuStatus;
use crate::report::WrittenReport;
use crate::shm::SegmentFacts;
use lockstead_inspect::snapshot::Snapshot;
use lockstead_reference::Reference;
use lockstead_render::machine::MachineFacts;

#[test]
fn the_page_has_the_fields_of_the_types() {
    Reference::of("lockstead-cli")
        .section::<MachineFacts>("machine")
        .section::<Snapshot>("lockstead dump")
        .section::<WrittenReport<'_>>("lockstead run")
        .section::<DiffReport>("lockstead diff")
        .section::<FeaturesReport>("lockstead features")
        .section::<OncpuStatus>("lockstead oncpu status")
        .section::<SegmentFacts>("lockstead shm")
        .hold();
}
