//! The part of a task that has a class: what it waits for, does and gives.

use super::act::{ClassPlan, Plan, away_for, burst, compute, progress, vary};
use super::class::{WorkClass, WorkStep};
use super::model::Workload;

/// Lays out the classes of a workload for tasks of these.
pub(super) fn plans(workload: &Workload, tasks: &[usize]) -> Vec<ClassPlan> {
    let place = |name: &str| workload.tokens.iter().position(|tokens| tokens.name == name);
    let steps = |steps: &[WorkStep]| {
        steps.iter().filter_map(|step| Some((place(&step.of)?, step.many))).collect()
    };
    let parties = |name: &String| {
        let meets = |&&class: &&usize| workload.classes[class].meets.contains(name);
        tasks.iter().filter(meets).count() as u32
    };
    let plan = |class: &WorkClass| ClassPlan {
        uses: class.uses.iter().filter_map(|used| workload.as_use(used)).collect(),
        takes: steps(&class.takes),
        gives: steps(&class.gives),
        meets: class.meets.iter().filter_map(|name| Some((place(name)?, parties(name)))).collect(),
    };
    workload.classes.iter().map(plan).collect()
}

/// Does one job of this class after the other, for ever.
pub(super) fn task(plan: &Plan, number: usize) {
    let (workload, class) = (&plan.workload, &plan.workload.classes[number]);
    let own = &plan.classes[number];
    loop {
        for &(tokens, many) in &own.takes {
            plan.tokens[tokens].take(many);
        }
        let rounds = if class.counts { 1.0 } else { 0.0 };
        compute(vary(class.compute, workload.variation), rounds);
        for (lock, used) in &own.uses {
            burst(workload, used, plan.site(*lock));
        }
        if class.compute == 0.0 {
            progress(rounds);
        }
        for &(tokens, many) in &own.gives {
            plan.tokens[tokens].give(many);
        }
        for &(meeting, parties) in &own.meets {
            plan.meetings[meeting].meet(parties);
        }
        away_for(class.away);
    }
}
