//! The strong components of a set of states, and how they follow each other.
//!
//! # Role
//! What [`order`](crate::order) moves may have cycles in it, which must stay in one
//! place, and ways, which must go on leading upwards.

use crate::net::{ArcDirection, NONE, NeighbourWalk, Net, WalkStep};
use alloc::vec;
use alloc::vec::Vec;

impl Net {
    /// Returns the strong components of the members, which carry their numbers as slots: which one
    /// each is in, and how far each is from the first ones, at most, in the direction.
    pub(crate) fn depths(&self, members: &[u32], way: ArcDirection) -> (Vec<u32>, Vec<i64>) {
        if members.len() == 1 {
            return (vec![0], vec![0]);
        }
        let (component, count) = self.components(members, way);
        let mut order: Vec<u32> = (0..members.len() as u32).collect();
        // Components are numbered from the last to the first.
        order.sort_unstable_by_key(|&m| core::cmp::Reverse(component[m as usize]));
        let mut depths = vec![0; count as usize];
        for m in order {
            let mine = component[m as usize];
            let next = depths[mine as usize] + 1;
            let mut walk = self.walk(members[m as usize], way);
            loop {
                match self.step(&mut walk, way) {
                    WalkStep::End => break,
                    WalkStep::Blind => {}
                    WalkStep::To(other) => {
                        let other = self.seen(other, way);
                        if other != NONE && component[other as usize] != mine {
                            let depth = &mut depths[component[other as usize] as usize];
                            *depth = next.max(*depth);
                        }
                    }
                }
            }
        }
        (component, depths)
    }

    /// Runs Tarjan's algorithm on the members, without recursion.
    fn components(&self, members: &[u32], way: ArcDirection) -> (Vec<u32>, u32) {
        let mut index = vec![NONE; members.len()];
        let mut low = vec![0; members.len()];
        let mut component = vec![NONE; members.len()];
        let (mut indices, mut components) = (0, 0);
        let mut open: Vec<u32> = Vec::new();
        let mut path: Vec<(u32, NeighbourWalk)> = Vec::new();
        for root in 0..members.len() as u32 {
            if index[root as usize] != NONE {
                continue;
            }
            let mut enter = Some(root);
            loop {
                if let Some(member) = enter.take() {
                    index[member as usize] = indices;
                    low[member as usize] = indices;
                    indices += 1;
                    open.push(member);
                    path.push((member, self.walk(members[member as usize], way)));
                }
                let Some((member, walk)) = path.last_mut() else { break };
                let member = *member as usize;
                match self.step(walk, way) {
                    WalkStep::Blind => {}
                    WalkStep::To(other) => match self.seen(other, way) {
                        NONE => {}
                        other if index[other as usize] == NONE => enter = Some(other),
                        other if component[other as usize] == NONE => {
                            low[member] = index[other as usize].min(low[member]);
                        }
                        _ => {}
                    },
                    WalkStep::End => {
                        path.pop();
                        if let Some(&(before, _)) = path.last() {
                            low[before as usize] = low[member].min(low[before as usize]);
                        }
                        if low[member] == index[member] {
                            while let Some(last) = open.pop() {
                                component[last as usize] = components;
                                if last as usize == member {
                                    break;
                                }
                            }
                            components += 1;
                        }
                    }
                }
            }
        }
        (component, components)
    }
}
