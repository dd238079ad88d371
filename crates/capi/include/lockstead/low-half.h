/*
 * Not for inclusion by programs: what the mutexes' fast paths do to the low half of
 * the state word.
 *
 * Taking it is one compare-exchange of zero with the caller's number; on x86-64 without
 * the `lock` prefix while the process has one thread, as for the libc's own locks.
 * Releasing it is, where the thread can be restarted there by the kernel (`rseq`), a
 * look and a plain store: whoever announces itself in between has the kernel restart
 * the section before it sleeps. Elsewhere it is one compare-exchange. Where it finds
 * more than the caller's number, or was restarted, nothing is done, and the library
 * goes on.
 */
#ifndef LOCKSTEAD_LOW_HALF_H
#define LOCKSTEAD_LOW_HALF_H

#include "base.h"

#if defined(__x86_64__) && defined(__LP64__) && !defined(__code_model_large__)
#define LKS_HALVES__ 1
#elif defined(__aarch64__) && !defined(__AARCH64_CMODEL_LARGE__)
#define LKS_HALVES__ 1
#endif

#if defined(__x86_64__) && defined(LKS_HALVES__) && defined(__has_include)
#if __has_include(<sys/single_threaded.h>)
#include <sys/single_threaded.h>
#define LKS_SINGLE__ 1
#endif
#endif

LKS_BEGIN_DECLS__

#ifdef LKS_HALVES__

typedef uint32_t __attribute__((may_alias)) lks_half__;

/* Where the kernel looks for the section that the calling thread is in; null: it
 * cannot be restarted. Written by the library alone. */
__extension__ extern __thread uint64_t *lks_sections__ __attribute__((tls_model("initial-exec")));

LKS_INLINE__ int lks_take_low__(uint64_t *word, uint32_t me)
{
    lks_half__ *half = (lks_half__ *)(void *)word;
    uint32_t idle = 0;
#if defined(LKS_SINGLE__) && !defined(LKS_SANITIZED__)
    if (LKS_UNLIKELY__(__libc_single_threaded)) {
        unsigned char taken;
        __asm__ __volatile__("cmpxchgl %3, %1\n\tsete %0"
                             : "=q"(taken), "+m"(*half), "+a"(idle)
                             : "r"(me)
                             : "memory", "cc");
        return taken;
    }
#endif
    return __atomic_compare_exchange_n(half, &idle, me, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

LKS_INLINE__ int lks_erase_low__(uint64_t *word)
{
    lks_half__ *half = (lks_half__ *)(void *)word;
#ifndef LKS_SANITIZED__
    uint64_t *sections = lks_sections__;
    if (LKS_LIKELY__(sections != NULL)) {
        /* The section's descriptor; its address to the kernel; the look and the store,
         * which is the last instruction of the section; and no descriptor any more, for
         * this code may be unloaded. The exit has the signature that every libc
         * registers its threads with before it. */
#ifdef __aarch64__
        __asm__ __volatile__ goto(".pushsection __rseq_cs, \"aw?\"\n\t"
                                  ".balign 32\n"
                                  "2:\t.long 0, 0\n\t"
                                  ".quad 3f, 4f - 3f, 5f\n\t"
                                  ".popsection\n\t"
                                  "adrp x16, 2b\n\t"
                                  "add x16, x16, :lo12:2b\n\t"
                                  "str x16, %[sections]\n"
                                  "3:\tldr w16, %[half]\n\t"
                                  "cmp w16, %w[most]\n\t"
                                  "b.hi %l[other]\n\t"
                                  "stlr wzr, %[half]\n"
                                  "4:\tstr xzr, %[sections]\n\t"
                                  ".pushsection .text.lks_restart, \"ax?\"\n\t"
                                  ".balign 4\n\t"
                                  ".inst 0xd428bc00\n"
                                  "5:\tb %l[other]\n\t"
                                  ".popsection"
                                  :
                                  : [half] "Q"(*half), [sections] "Q"(*sections), [most] "r"(LKS_MAX_SLOTS__)
                                  : "x16", "x17", "memory", "cc"
                                  : other);
#else
        __asm__ __volatile__ goto(".pushsection __rseq_cs, \"aw?\"\n\t"
                                  ".balign 32\n"
                                  "2:\t.long 0, 0\n\t"
                                  ".quad 3f, 4f - 3f, 5f\n\t"
                                  ".popsection\n\t"
                                  "leaq 2b(%%rip), %%rax\n\t"
                                  "movq %%rax, %[sections]\n"
                                  "3:\tcmpl %[most], %[half]\n\t"
                                  "ja %l[other]\n\t"
                                  "movl $0, %[half]\n"
                                  "4:\tmovq $0, %[sections]\n\t"
                                  ".pushsection .text.lks_restart, \"ax?\"\n\t"
                                  ".long 0x53053053\n"
                                  "5:\tjmp %l[other]\n\t"
                                  ".popsection"
                                  :
                                  : [half] "m"(*half), [sections] "m"(*sections), [most] "i"(LKS_MAX_SLOTS__)
                                  : "rax", "memory", "cc"
                                  : other);
#endif
        return 1;
    other:
        __atomic_store_n(sections, 0, __ATOMIC_RELAXED);
        return 0;
    }
#endif
    {
        uint32_t me = lks_self__;
        if (__atomic_compare_exchange_n(half, &me, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return 1;
        /* To a thread sanitizer the attempt was a use of the memory, too. */
        LKS_RELEASING__(word);
        return 0;
    }
}

#else

LKS_INLINE__ int lks_exchange_low__(uint64_t *word, uint32_t from, uint32_t to, int order)
{
    uint64_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);
    while ((uint32_t)seen == from)
        if (__atomic_compare_exchange_n(word, &seen, (seen & ~(uint64_t)UINT32_MAX) | to, 0, order,
                                        __ATOMIC_RELAXED))
            return 1;
    return 0;
}

LKS_INLINE__ int lks_take_low__(uint64_t *word, uint32_t me)
{
    return lks_exchange_low__(word, 0, me, __ATOMIC_ACQUIRE);
}

LKS_INLINE__ int lks_erase_low__(uint64_t *word)
{
    return lks_exchange_low__(word, lks_self__, 0, __ATOMIC_RELEASE);
}

#endif

LKS_END_DECLS__

#endif
