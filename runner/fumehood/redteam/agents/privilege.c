/* Tries to become root, or to gain the rights of root. */

#include "try.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>

/* Only what was carried out counts: to a namespace of users, root is no user that could be asked for. */
#define DONE(what, call) ((call) == -1 ? tried(what, strerror(errno)) : got(what, "allowed"))

static void take_capabilities(void) {
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct all[2] = {{~0u, ~0u, ~0u}, {~0u, ~0u, ~0u}};
    DONE("every capability", syscall(SYS_capset, &header, all));
}

/* This call returns the previous ID in any case; a second call with an invalid ID returns the present one. */
static void take_files(void) {
    setfsuid(0);
    (setfsuid(-1) == 0 ? got : tried)("root's files", "the user that files see");
}

static void look_at_status(void) {
    char line[256];
    unsigned long long bits;
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "CapEff: %llx", &bits) == 1 || sscanf(line, "CapPrm: %llx", &bits) == 1)
            (bits ? got : tried)("a capability from the start", line);
    if (status)
        fclose(status);
}

int main(void) {
    gid_t root_group = 0;
    (getuid() == 0 || geteuid() == 0 ? got : tried)("root from the start", "the user it runs as");
    look_at_status();
    DONE("the user root", setuid(0));
    DONE("all users root", setresuid(0, 0, 0));
    DONE("the group root", setresgid(0, 0, 0));
    take_files();
    DONE("the groups of root", setgroups(1, &root_group));
    take_capabilities();
    DONE("a capability for children", prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0));
    DONE("rights without capabilities", prctl(PR_SET_SECUREBITS, 0xff, 0, 0, 0));
    DONE("new privileges again", prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0));
    return 0;
}
