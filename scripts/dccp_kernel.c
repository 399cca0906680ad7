/* One end of a connection of the kernel's DCCP, which sends and checks numbered packets as
 * crates/fontis/examples/dccp_peer.rs does at the other end.
 *
 * dccp_kernel server|client ADDRESS PORT SERVICE CCID COUNT SIZE yes|no
 *
 * The last one says whether this end closes when nothing has come for three seconds. Prints a line
 * when it listens, and at the end a line of JSON; `gap` is the first number that has not come. It is linked statically and runs in the guest of
 * scripts/dccp_kernel.py. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/dccp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SOL_DCCP 269
#define MOST 65536
#define QUIET 3.0
#define TIMEOUTS 15.0
#define PATIENCE 90.0

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void fail(const char *what) {
    printf("{\"end\": \"%s: %s\"}\n", what, strerror(errno));
    exit(1);
}

/* The packet with this number: its length and its content follow from it. */
static size_t packet(uint32_t number, uint32_t size, uint8_t *out) {
    uint32_t draw = number * 2654435761u >> 16;
    size_t length = 4 + draw % (size - 3);
    uint32_t big = htonl(number);
    memcpy(out, &big, 4);
    for (size_t place = 4; place < length; place++)
        out[place] = (uint8_t)(number + 7 * place);
    return length;
}

static void option(int fd, int name, const void *value, socklen_t length) {
    if (setsockopt(fd, SOL_DCCP, name, value, length) < 0)
        fail("setsockopt");
}

/* The negotiated CCID of what this end sends. */
static int ccid_of(int fd) {
    int value = -1;
    socklen_t length = sizeof value;
    getsockopt(fd, SOL_DCCP, DCCP_SOCKOPT_TX_CCID, &value, &length);
    return value;
}

int main(int argc, char **argv) {
    if (argc != 9) {
        fprintf(stderr, "see the comment at the top of the source\n");
        return 2;
    }
    int is_server = !strcmp(argv[1], "server");
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(argv[3]))};
    inet_pton(AF_INET, argv[2], &address.sin_addr);
    uint32_t service = htonl(strtoul(argv[4], 0, 10));
    uint8_t ccid = atoi(argv[5]);
    uint32_t count = strtoul(argv[6], 0, 10), size = strtoul(argv[7], 0, 10);
    int closes = !strcmp(argv[8], "yes");

    int fd = socket(AF_INET, SOCK_DCCP, IPPROTO_DCCP);
    if (fd < 0)
        fail("socket");
    option(fd, DCCP_SOCKOPT_SERVICE, &service, sizeof service);
    option(fd, DCCP_SOCKOPT_CCID, &ccid, 1);
    if (is_server) {
        int one = 1;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0)
            fail("bind");
        if (listen(fd, 4) < 0)
            fail("listen");
        printf("listening\n");
        fflush(stdout);
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        if (poll(&waiting, 1, 1000 * (int)PATIENCE) != 1)
            fail("nobody came");
        int accepted = accept(fd, 0, 0);
        if (accepted < 0)
            fail("accept");
        close(fd);
        fd = accepted;
    } else if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        fail("connect");
    }

    static uint8_t own[MOST], came[MOST], expected[MOST];
    uint8_t *seen = calloc(1 << 24, 1);
    uint32_t sent = 0, packets = 0, wrong = 0, again = 0, late = 0, newest = 0;
    uint64_t bytes = 0;
    const char *end = "quiet";
    double begin = now(), last = begin;
    int used = ccid_of(fd);
    while (now() - begin < PATIENCE) {
        int is_stuck = 0;
        while (sent < count) {
            ssize_t done = send(fd, own, packet(sent, size, own), MSG_DONTWAIT | MSG_NOSIGNAL);
            if (done < 0) {
                is_stuck = errno == EAGAIN || errno == ENOBUFS;
                if (!is_stuck)
                    end = strerror(errno);
                break;
            }
            sent++;
            last = now();
        }
        struct pollfd waiting = {.fd = fd, .events = POLLIN};
        poll(&waiting, 1, is_stuck ? 1 : 20);
        ssize_t length;
        while ((length = recv(fd, came, sizeof came, MSG_DONTWAIT)) > 0) {
            uint32_t number;
            memcpy(&number, came, 4);
            number = ntohl(number);
            packets++, bytes += length, last = now();
            if (length < 4 || number >= 1 << 24 || (size_t)length != packet(number, size, expected) ||
                memcmp(came, expected, length)) {
                wrong++;
                continue;
            }
            again += seen[number];
            seen[number] = 1;
            late += number < newest;
            newest = number > newest ? number : newest;
        }
        if (length == 0) {
            end = "closed by the peer";
            break;
        }
        if (errno != EAGAIN && errno != EINTR) {
            end = strerror(errno);
            break;
        }
        /* Timeouts that follow each other are long, too. */
        double quiet = 10 * packets < 9 * count ? TIMEOUTS : QUIET;
        if (closes && sent == count && now() - last > quiet) {
            end = "closed here";
            break;
        }
    }
    uint32_t gap = 0;
    while (seen[gap])
        gap++;
    printf("{\"sent\": %u, \"packets\": %u, \"bytes\": %llu, \"wrong\": %u, \"again\": %u, \"late\": %u, "
           "\"gap\": %u, \"end\": \"%s\", \"seconds\": %.3f, \"ccid\": %d}\n",
           sent, packets, (unsigned long long)bytes, wrong, again, late, gap, end, now() - begin, used);
    fflush(stdout);
    close(fd);
    return 0;
}
