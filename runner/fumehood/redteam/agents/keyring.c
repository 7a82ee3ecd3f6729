/* Uses the kernel's keyring, which belongs to no namespace. */

#include "try.h"

#include <linux/keyctl.h>

int main(void) {
    ATTEMPT("leave a key", syscall(SYS_add_key, "user", "mark", "1", 1, KEY_SPEC_USER_KEYRING));
    ATTEMPT("find a key", syscall(SYS_request_key, "user", "mark", NULL, KEY_SPEC_USER_KEYRING));
    ATTEMPT("the keys of the session", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_SESSION_KEYRING, 0));
    ATTEMPT("the keys of the user", syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0));
    ATTEMPT("join a session", syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL));
    return 0;
}
