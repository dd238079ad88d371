//! The reference of the JSON reports of `lockstead-bench` is what their types say.

use crate::frontier::FrontierReport;
use crate::map::MapReport;
use crate::shared::bench::SharedReport;
use crate::sim::check::CheckReport;
use crate::sim::gate::GateReport;
use crate::sim::replay::ReplayReport;
use crate::sim::sensitivity::SensitivityReport;
use crate::sim::single::RunSummary;
use crate::sim::sweep::SweepReport;
use crate::sim::trace::TraceReport;
use crate::sim::whatif::WhatifReport;
use lockstead_bench::LockName;
use lockstead_bench::contended::ContendedReport;
use lockstead_bench::explain::ExplainReport;
use lockstead_bench::explain::ablation::AblationReport;
use lockstead_bench::oncpu::OncpuReport;
use lockstead_bench::rt::RtReport;
use lockstead_bench::shared::dead::DeadReport;
use lockstead_bench::shared::rivals::RivalsReport;
use lockstead_bench::shared::steps::StepsReport;
use lockstead_bench::shared::storm::StormReport;
use lockstead_bench::uncontended::UncontendedReport;
use lockstead_bench::vfs::VfsReport;
use lockstead_bench::ww::WwReport;
use lockstead_reference::Reference;
use lockstead_render::machine::MachineFacts;

#[test]
fn the_page_has_the_fields_of_the_types() {
    Reference::of("lockstead-bench")
        .section::<LockName>("the names of locks")
        .section::<MachineFacts>("machine")
        .section::<UncontendedReport>("lockstead bench uncontended")
        .section::<ContendedReport>("lockstead bench contended")
        .section::<MapReport<'_>>("lockstead bench map")
        .section::<FrontierReport<'_>>("lockstead bench frontier")
        .section::<AblationReport>("lockstead bench ablation")
        .section::<ExplainReport>("lockstead explain")
        .section::<VfsReport>("lockstead bench vfs")
        .section::<RtReport>("lockstead bench rt")
        .section::<WwReport>("lockstead bench ww")
        .section::<SharedReport>("lockstead bench shared")
        .section::<StormReport>("lockstead bench storm")
        .section::<StepsReport>("lockstead bench steps")
        .section::<RivalsReport>("lockstead bench rivals")
        .section::<DeadReport>("lockstead bench dead")
        .section::<OncpuReport>("lockstead oncpu check")
        .section::<ReplayReport<'_>>("lockstead sim replay")
        .section::<RunSummary>("lockstead sim run")
        .section::<SweepReport>("lockstead sim sweep")
        .section::<WhatifReport<'_>>("lockstead sim whatif")
        .section::<GateReport>("lockstead sim whatif --gate")
        .section::<CheckReport>("lockstead sim check")
        .section::<TraceReport<'_>>("lockstead sim trace")
        .section::<SensitivityReport<'_>>("lockstead sim sensitivity")
        .hold();
}
