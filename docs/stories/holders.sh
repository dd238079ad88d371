#!/bin/sh
# Traces one mutex of a process that runs, as root, for so many seconds: who waits for it, gets it and
# gives it back, and when threads with names like NAME get and lose a processor.
# usage: holders.sh PID ADDRESS NAME SECONDS > TRACE
set -e
libc=$(awk '/libc\.so\.6/ { print $6; exit }' "/proc/$1/maps")
for probe in 'lk_lock=pthread_mutex_lock mutex=%di:u64' 'lk_lock_end=pthread_mutex_lock%return' \
    'lk_try=pthread_mutex_trylock mutex=%di:u64' \
    'lk_try_end=pthread_mutex_trylock%return ret=$retval:s32' \
    'lk_unlock=pthread_mutex_unlock mutex=%di:u64'; do
    perf probe -q -x "$libc" "$probe"
done
folder=$(mktemp -d)
trap 'rm -r "$folder"; perf probe -q -d "probe_libc:lk_*"' EXIT
mutex="mutex==$2"
# Two commands: what belongs to the process does not slow others, and switches are seen from both sides.
perf record -q -k mono -p "$1" -m 8M -o "$folder/locks" \
    -e probe_libc:lk_lock --filter "$mutex" -e probe_libc:lk_try --filter "$mutex" \
    -e probe_libc:lk_unlock --filter "$mutex" -e probe_libc:lk_lock_end__return \
    -e probe_libc:lk_try_end__return -e syscalls:sys_enter_futex --filter "uaddr==$2" \
    -- sleep "$4" &
perf record -q -k mono -a -m 8M -o "$folder/switches" \
    -e sched:sched_switch --filter "prev_comm ~ \"$3\" || next_comm ~ \"$3\"" \
    -e sched:sched_wakeup --filter "comm ~ \"$3\"" -- sleep "$4"
wait
for part in locks switches; do
    perf script -i "$folder/$part" -F tid,time,event,trace --ns 2> /dev/null
done
