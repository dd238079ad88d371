//! The biased mutex, each copy broken in one place, for `tests/broken_biased.rs`.

use super::Variant;

pub(crate) const BIASED: &[Variant] = &[
    Variant {
        name: "biased_revokes_without_a_fence",
        file: "biased.rs",
        line: "fenced = fenced || P::fence_others(owner);",
        instead: "fenced = true;",
    },
    Variant {
        name: "biased_owner_looks_no_second_time",
        file: "biased.rs",
        line: "if self.revoked.load(Ordering::Relaxed) == 0 {",
        instead: "if true {",
    },
    Variant {
        name: "biased_owner_looks_before_it_says_so",
        file: "biased.rs",
        line: "        self.own.store(me, Ordering::Relaxed);
        // ord: BIAS-5 for the compiler: the look comes after the store.
        compiler_fence(Ordering::SeqCst);
        if self.revoked.load(Ordering::Relaxed) == 0 {",
        instead: "        if self.revoked.load(Ordering::Relaxed) == 0 {
            self.own.store(me, Ordering::Relaxed);",
    },
    Variant {
        name: "biased_revoker_looks_before_the_fence",
        file: "biased.rs",
        line: "            fenced = fenced || P::fence_others(owner);
            // ord: BIAS-3 acquire, pairs with BIAS-2 and BIAS-4: the owner's sections.
            let own = self.own.load(Ordering::Acquire);",
        instead: "            let own = self.own.load(Ordering::Acquire);
            fenced = fenced || P::fence_others(owner);",
    },
    Variant {
        name: "biased_revoker_waits_for_nobody",
        file: "biased.rs",
        line: "if own == 0 || free && fenced {",
        instead: "if fenced {",
    },
    Variant {
        name: "biased_revoker_believes_without_a_fence",
        file: "biased.rs",
        line: "if own == 0 || free && fenced {",
        instead: "if own == 0 || free {",
    },
    Variant {
        name: "biased_revoker_looks_no_second_time",
        file: "biased.rs",
        line: "let soon = P::now().after(nap);",
        instead: "let soon = Nanos(u64::MAX); let _ = nap;",
    },
    Variant {
        name: "biased_owner_that_backs_out_stays_in",
        file: "biased.rs",
        line: "self.own.store(0, Ordering::Release);",
        instead: "",
    },
    Variant {
        name: "biased_lock_is_plain_before_the_owner_has_left",
        file: "biased.rs",
        line: "self.revoked.store(ASKED, Ordering::Relaxed);",
        instead: "self.revoked.store(PLAIN, Ordering::Relaxed);",
    },
    Variant {
        name: "biased_one_that_gives_up_keeps_the_inner_mutex",
        file: "biased.rs",
        line: "        } else {
            // SAFETY: the caller has it.
            unsafe { self.inner.unlock() };
        }
        result",
        instead: "        } else if result.is_ok() {
            unsafe { self.inner.unlock() };
        }
        result",
    },
    Variant {
        name: "biased_release_looks_again",
        file: "biased.rs",
        line: "self.own.store(hold.0 | FREE, Ordering::Release);",
        instead: "self.own.store(hold.0 | FREE, Ordering::Release);
            let _ = self.belongs_to();",
    },
    Variant {
        name: "biased_owner_is_made_beside_the_inner_mutex",
        file: "biased.rs",
        line: "self.inner.lock_how(how, 0, site).and_then(|()| self.settle(me, how))",
        instead:
            "if self.own.load(Ordering::Acquire) == 0 && self.revoked.load(Ordering::Relaxed) == 0 {
                self.own.store(me.get(), Ordering::Relaxed);
                Ok(Hold(me.get()))
            } else {
                self.inner.lock_how(how, 0, site).and_then(|()| self.settle(me, how))
            }",
    },
    Variant {
        name: "biased_owner_takes_it_twice",
        file: "biased.rs",
        line: "if self.own.load(Ordering::Acquire) != me | FREE {",
        instead: "if self.own.load(Ordering::Acquire) & !FREE != me {",
    },
];
