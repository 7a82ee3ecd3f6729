/* Makes system calls whose implementations have been used to escape from boxes.

   Every call has invalid arguments, so a permitted call has no effect. */

#include "try.h"

#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/klog.h>
#include <sys/personality.h>
#include <sys/time.h>
#include <sys/timex.h>

#ifndef SYS_io_uring_setup
#define SYS_io_uring_setup 425
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#endif

int main(void) {
    union bpf_attr program = {0};
    struct perf_event_attr event = {.type = PERF_TYPE_SOFTWARE, .size = sizeof event};
    struct timex drift = {.modes = ADJ_TICK, .tick = 0};
    struct timezone nowhere = {.tz_minuteswest = 99999};
    char name[] = "localhost";
    int discipline = 99;

    MAY("load a program into the kernel", syscall(SYS_bpf, BPF_PROG_LOAD, &program, sizeof program));
    MAY("a map in the kernel", syscall(SYS_bpf, BPF_MAP_CREATE, &program, sizeof program));
    MAY("handle faults of memory", syscall(SYS_userfaultfd, 0));
    MAY("a ring into the kernel", syscall(SYS_io_uring_setup, 1, NULL));
    MAY("count the kernel's events", syscall(SYS_perf_event_open, &event, 0, -1, -1, 0));
    MAY("load a module", syscall(SYS_init_module, NULL, 0, ""));
    MAY("load a module from a file", syscall(SYS_finit_module, -1, "", 0));
    MAY("unload a module", syscall(SYS_delete_module, "no_such_module", O_NONBLOCK));
    MAY("another kernel", syscall(SYS_kexec_load, 0, 0, NULL, ~0ul));
    MAY("switch the machine off", syscall(SYS_reboot, 0, 0, 0, NULL));
    MAY("set the clock", settimeofday(NULL, &nowhere));
    MAY("let the clock drift", adjtimex(&drift));
    MAY("name the machine", sethostname(name, sizeof name - 1));
    MAY("what the kernel says", klogctl(10, NULL, 0));
    MAY("watch everybody's files", syscall(SYS_fanotify_init, 0, 0));
    MAY("memory without chance", personality(ADDR_NO_RANDOMIZE | 0x0400000));
    MAY("hang up terminals", syscall(SYS_vhangup));
    MAY("files by number", syscall(SYS_open_by_handle_at, -1, NULL, 0));
    MAY("numbers of files", syscall(SYS_name_to_handle_at, -1, NULL, NULL, NULL, 0));
    MAY("cookies of folders", syscall(SYS_lookup_dcookie, 0, NULL, 0));
    MAY("memory's policy", syscall(SYS_set_mempolicy, 0, NULL, 0));
    MAY("give pages to a pipe", syscall(SYS_vmsplice, -1, NULL, 0, 0));
    MAY("wait in several places", syscall(SYS_futex_waitv, NULL, 0, 1, NULL, 0));
    MAY("a rare line discipline", ioctl(open("/dev/ptmx", O_RDWR | O_NOCTTY), TIOCSETD, &discipline));
    MAY("the same, with a larger number",
        syscall(SYS_ioctl, open("/dev/ptmx", O_RDWR | O_NOCTTY), TIOCSETD | 1l << 32, &discipline));
#ifdef SYS_ioperm
    MAY("ports of the processor", syscall(SYS_ioperm, 0x80, 1, 1));
    MAY("all ports of the processor", syscall(SYS_iopl, 3));
    MAY("tables of the processor", syscall(SYS_modify_ldt, 99, NULL, 0));
#endif
    return 0;
}
