/* Sends raw packets, and reaches the kernel through rare protocols. */

#include "try.h"

#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/vm_sockets.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#ifndef IPPROTO_MPTCP
#define IPPROTO_MPTCP 262
#endif

static void open_socket(const char *what, int family, int type, int protocol) {
    int fd = ATTEMPT(what, socket(family, type, protocol));
    if (fd >= 0)
        close(fd);
}

/* A pair that the filter permits reaches the protocol, or loads its module, even if no module is installed. */
static void open_pair(const char *what, int family) {
    int pair[2];
    MAY(what, socketpair(family, SOCK_STREAM, 0, pair));
}

static void reach_hypervisor(void) {
    struct sockaddr_vm address = {.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_HOST, .svm_port = 1};
    int fd = ATTEMPT("a socket to the hypervisor", socket(AF_VSOCK, SOCK_STREAM, 0));
    if (fd >= 0) {
        ATTEMPT("the hypervisor", connect(fd, (struct sockaddr *)&address, sizeof address));
        close(fd);
    }
}

/* Asks the kernel to make a network device, and reads its answer. */
static void make_device(void) {
    struct {
        struct nlmsghdr header;
        struct ifinfomsg info;
    } request = {
        .header = {.nlmsg_len = sizeof request, .nlmsg_type = RTM_NEWLINK,
                   .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK},
        .info = {.ifi_family = AF_UNSPEC},
    };
    char answer[4096];
    int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    if (fd < 0 || send(fd, &request, sizeof request, 0) < 0 || recv(fd, answer, sizeof answer, 0) < 0) {
        tried("make a network device", strerror(errno));
        return;
    }
    struct nlmsgerr *error = NLMSG_DATA((struct nlmsghdr *)answer);
    errno = -error->error;
    report("make a network device", error->error ? -1 : 0);
    close(fd);
}

static void raise_loopback(void) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_PROMISC};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ATTEMPT("change a network device", ioctl(fd, SIOCSIFFLAGS, &request));
    close(fd);
}

int main(void) {
    open_socket("raw ICMP", AF_INET, SOCK_RAW, IPPROTO_ICMP);
    open_socket("raw IP", AF_INET, SOCK_RAW, IPPROTO_RAW);
    open_socket("raw IPv6", AF_INET6, SOCK_RAW, IPPROTO_ICMPV6);
    open_socket("packets", AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
    open_socket("the kernel's cryptography", AF_ALG, SOCK_SEQPACKET, 0);
    open_socket("Bluetooth", AF_BLUETOOTH, SOCK_RAW, 1);
    open_socket("a CAN bus", AF_CAN, SOCK_RAW, 1);
    open_socket("TIPC", AF_TIPC, SOCK_SEQPACKET, 0);
    open_socket("XDP", AF_XDP, SOCK_RAW, 0);
    open_socket("RDS", AF_RDS, SOCK_SEQPACKET, 0);
    open_socket("netfilter", AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
    open_socket("the kernel's audit", AF_NETLINK, SOCK_RAW, NETLINK_AUDIT);
    open_socket("kernel events", AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT);
    open_pair("a pair of TIPC sockets", AF_TIPC);
    open_pair("a pair of SMC sockets", 43);
    MAY("SCTP", socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP));
    MAY("DCCP", socket(AF_INET, SOCK_DCCP, 0));
    MAY("several paths of TCP", socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP));
    reach_hypervisor();
    make_device();
    raise_loopback();
    return 0;
}
