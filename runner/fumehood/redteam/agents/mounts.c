/* Mounts, makes devices, changes the root. The requested file systems do not exist, so nothing is mounted. */

#include "try.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_fsopen 430
#define SYS_fsmount 432
#define SYS_mount_setattr 442
#endif

struct mount_attributes {
    uint64_t set, clear, propagation, user_namespace;
};

int main(void) {
    struct mount_attributes read_only = {.set = 1};
    mkdir("/tmp/place", 0700);
    MAY("mount", mount("none", "/tmp/place", "no-such-file-system", 0, NULL));
    MAY("move a mount", mount("/no-such-folder", "/tmp/place", NULL, MS_MOVE, NULL));
    MAY("write where one may only read", mount(NULL, "/tmp/place", NULL, MS_REMOUNT | MS_BIND, NULL));
    MAY("remove a mount", umount2("/tmp/place", MNT_DETACH));
    MAY("open a file system", syscall(SYS_fsopen, "no-such-file-system", 0));
    MAY("copy a mount", syscall(SYS_open_tree, -1, "/tmp/place/none", 1));
    MAY("change a mount", syscall(SYS_mount_setattr, -1, "/tmp/place", 0, &read_only, sizeof read_only));
    MAY("change the root for good", syscall(SYS_pivot_root, "/tmp/place", "/tmp/place"));
    ATTEMPT("make a disk", mknod("/tmp/place/disk", S_IFBLK | 0600, makedev(254, 0)));
    ATTEMPT("make the memory", mknod("/tmp/place/memory", S_IFCHR | 0600, makedev(1, 1)));
    MAY("use a file as memory's backing", syscall(SYS_swapon, "/tmp/place", 0));
    MAY("count what everybody runs", syscall(SYS_acct, "/tmp/place"));
    MAY("change the root", chroot("/tmp/place"));
    return 0;
}
