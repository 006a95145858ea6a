/* Captures what goes over the loopback interface to and from one port, with the kernel's stamps.
 *
 *   capture [-m MEGABYTES] [-s SHIFT] PORT FILE
 *
 * Prints `capturing` when it does, captures until its standard input ends, then writes FILE and prints one line of
 * JSON. It sleeps meanwhile: packets stay in a ring that the kernel writes to (256 MB; about 1.3 million of them), so
 * that what is measured shares no CPU with it but the copy of each packet's headers. With -s only connections
 * whose client port is a multiple of 2^SHIFT are captured.
 *
 * FILE: time_ns,source_port,destination_port,payload_bytes,sequence: one row for each TCP segment with payload.
 * Times are on CLOCK_MONOTONIC, made from the kernel's stamps on CLOCK_REALTIME by both clocks read together
 * before and after. A stamp is taken on the way to the receiver, before TCP has the segment: within the sender's system
 * call, unless the kernel was interrupted there.
 *
 * drops: segments that the ring had no space for; where there are any, the capture is no truth. It must be run where
 * nothing else is to be heard on loopback, as in
 * a network namespace of its own, and it needs CAP_NET_RAW there.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"

#define BLOCK_BYTES (1u << 20)
/* A block that is not full is passed on after so long; it is then waited for once at the end. */
#define BLOCK_MS 500
/* Headers of Ethernet, IPv4 and TCP with options are shorter. */
#define SNAP_BYTES 136
#define CLOCK_READINGS 200
/* By how much the two clocks may drift apart during a capture before their relation is not known well enough. */
#define DRIFT_MAX_NS (200 * NS_PER_US)

struct pair {
    int64_t monotonic, realtime;
};

/* Both clocks at the same moment: of many readings the one that took least. */
static struct pair read_clocks(void) {
    struct pair best = {0};
    int64_t width = INT64_MAX;
    for (int i = 0; i < CLOCK_READINGS; i++) {
        int64_t before = now_ns(), realtime = clock_ns(CLOCK_REALTIME), after = now_ns();
        if (after - before >= width) continue;
        width = after - before;
        best = (struct pair){.monotonic = before + width / 2, .realtime = realtime};
    }
    return best;
}

static void filter(int fd, uint16_t port, uint32_t client_mask) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 12),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 20),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 23),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_TCP, 0, 18),
        BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 14),
        /* From the server: the client's port is the destination. */
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, 14),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 2),
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, 16),
        BPF_JUMP(BPF_JMP | BPF_JA, 3, 0, 0),
        /* To the server: it is the source. */
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, 16),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, port, 0, 11),
        BPF_STMT(BPF_LD | BPF_H | BPF_IND, 14),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, client_mask, 9, 0),
        /* The length of the payload is that of the packet without both headers. */
        BPF_STMT(BPF_LD | BPF_B | BPF_IND, 26),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf0),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 2),
        BPF_STMT(BPF_ALU | BPF_ADD | BPF_X, 0),
        BPF_STMT(BPF_MISC | BPF_TAX, 0),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 16),
        BPF_STMT(BPF_ALU | BPF_SUB | BPF_X, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SNAP_BYTES),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {.len = sizeof code / sizeof *code, .filter = code};
    if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0) die("no filter");
}

/* A socket that captures what arrives on loopback, and its ring. */
static int open_capture(uint16_t port, uint32_t client_mask, unsigned blocks, char **ring) {
    int on = 1, version = TPACKET_V3;
    /* Without a protocol nothing is captured before all is set. */
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (fd < 0) die("no packet socket (it needs CAP_NET_RAW)");
    filter(fd, port, client_mask);
    struct tpacket_req3 request = {
        .tp_block_size = BLOCK_BYTES,
        .tp_block_nr = blocks,
        .tp_frame_size = 2048,
        .tp_frame_nr = BLOCK_BYTES / 2048 * blocks,
        .tp_retire_blk_tov = BLOCK_MS,
    };
    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof on) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request) != 0)
        die("the packet socket cannot be set up");
    *ring = mmap(NULL, (size_t)BLOCK_BYTES * blocks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (*ring == MAP_FAILED) die("no memory for the ring");
    struct sockaddr_ll own = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)if_nametoindex("lo")};
    if (bind(fd, (struct sockaddr *)&own, sizeof own) != 0) die("cannot capture on lo");
    return fd;
}

static uint16_t read_u16(const uint8_t *at) { return (uint16_t)(at[0] << 8 | at[1]); }
static uint32_t read_u32(const uint8_t *at) { return (uint32_t)read_u16(at) << 16 | read_u16(at + 2); }

static void write_packet(FILE *file, const struct tpacket3_hdr *packet, struct pair first, struct pair last) {
    const uint8_t *ip = (const uint8_t *)packet + packet->tp_mac + ETH_HLEN;
    const uint8_t *tcp = ip + (ip[0] & 0xf) * 4;
    int payload = read_u16(ip + 2) - (ip[0] & 0xf) * 4 - (tcp[12] >> 4) * 4;
    int64_t realtime = packet->tp_sec * NS_PER_S + packet->tp_nsec;
    /* Between both readings the distance of the clocks goes in a straight line. */
    double part = (double)(realtime - first.realtime) / (double)(last.realtime - first.realtime);
    int64_t distance = first.realtime - first.monotonic;
    int64_t drift = last.realtime - last.monotonic - distance;
    int64_t time = realtime - distance - (int64_t)((double)drift * part);
    fprintf(file, "%lld,%u,%u,%d,%u\n", (long long)time, read_u16(tcp), read_u16(tcp + 2), payload, read_u32(tcp + 4));
}

/* Writes all packets of the ring, block by block. */
static size_t write_ring(FILE *file, char *ring, unsigned blocks, struct pair first, struct pair last) {
    size_t written = 0;
    for (unsigned index = 0; index < blocks; index++) {
        struct tpacket_block_desc *block = (void *)(ring + (size_t)index * BLOCK_BYTES);
        if (!(__atomic_load_n(&block->hdr.bh1.block_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) break;
        char *at = (char *)block + block->hdr.bh1.offset_to_first_pkt;
        for (unsigned i = 0; i < block->hdr.bh1.num_pkts; i++) {
            const struct tpacket3_hdr *packet = (const void *)at;
            written++;
            write_packet(file, packet, first, last);
            at += packet->tp_next_offset;
        }
    }
    return written;
}

int main(int argc, char **argv) {
    unsigned blocks = 256;
    uint32_t client_mask = 0;
    for (int option; (option = getopt(argc, argv, "m:s:")) != -1;) {
        switch (option) {
        case 'm': blocks = (unsigned)number(optarg, 1); break;
        case 's': client_mask = (1u << number(optarg, 0)) - 1; break;
        default: return 2;
        }
    }
    if (argc - optind != 2) {
        fputs("capture [-m MEGABYTES] [-s SHIFT] PORT FILE\n", stderr);
        return 2;
    }
    char *ring;
    int fd = open_capture((uint16_t)number(argv[optind], 1), client_mask, blocks, &ring);
    FILE *file = fopen(argv[optind + 1], "w");
    if (file == NULL) die("cannot write %s", argv[optind + 1]);
    struct pair first = read_clocks();
    puts("capturing");
    fflush(stdout);
    for (char ignored[64]; read(STDIN_FILENO, ignored, sizeof ignored) > 0;) {}

    /* The block that is being filled is passed on by the kernel's timer. */
    poll(NULL, 0, 2 * BLOCK_MS);
    struct pair last = read_clocks();
    int64_t drift = (last.realtime - last.monotonic) - (first.realtime - first.monotonic);
    errno = 0;
    if (llabs(drift) > DRIFT_MAX_NS) die("CLOCK_REALTIME moved by %lld ns against CLOCK_MONOTONIC", (long long)drift);
    struct tpacket_stats_v3 stats;
    socklen_t length = sizeof stats;
    if (getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &length) != 0) die("no statistics");
    fputs("time_ns,source_port,destination_port,payload_bytes,sequence\n", file);
    size_t packets = write_ring(file, ring, blocks, first, last);
    if (fclose(file) != 0) die("cannot write %s", argv[optind + 1]);
    printf("{\"packets\":%zu,\"drops\":%u,\"clock_drift_ns\":%lld}\n", packets, stats.tp_drops, (long long)drift);
    return 0;
}
