/* Many associations of usrsctp: an echo server, or its client.
 *
 * sctp_many UDP_PORT server PORT PEER_UDP_PORT
 * sctp_many UDP_PORT client PORT PEER_UDP_PORT COUNT AT_ONCE SEED
 *
 * All at 127.0.0.1. A client sends 1 to 1,000,000 bytes over each association, log-uniform, and
 * compares what comes back. It belongs to scripts/sctp_many.py. */

#include <arpa/inet.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <usrsctp.h>

#define MESSAGE 8000

static int port, peer_udp, count, seed;
static int next_number, failures;
static unsigned long long total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct sockaddr_in at(int number) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)number)};
    inet_pton(AF_INET, "127.0.0.1", &in.sin_addr);
    return in;
}

static struct socket *make(void) {
    struct socket *sock = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    struct sctp_udpencaps encaps = {.sue_port = htons((uint16_t)peer_udp)};
    encaps.sue_address.ss_family = AF_INET;
    if (!sock || usrsctp_setsockopt(sock, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encaps,
                                    (socklen_t)sizeof(encaps)) < 0) {
        perror("socket");
        exit(1);
    }
    return sock;
}

static ssize_t receive(struct socket *sock, char *into, size_t len) {
    struct sockaddr_in from;
    socklen_t from_len = sizeof(from), info_len = 0;
    unsigned int type = 0;
    int flags = 0;
    return usrsctp_recvv(sock, into, len, (struct sockaddr *)&from, &from_len, NULL, &info_len,
                         &type, &flags);
}

static int give(struct socket *sock, const char *from, size_t len) {
    return usrsctp_sendv(sock, from, len, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO, 0) < 0;
}

static void *echo(void *argument) {
    struct socket *sock = argument;
    char buffer[MESSAGE];
    ssize_t n;
    while ((n = receive(sock, buffer, sizeof(buffer))) > 0 && !give(sock, buffer, (size_t)n)) {
    }
    usrsctp_close(sock);
    return NULL;
}

static void serve(void) {
    struct socket *sock = make();
    struct sockaddr_in own = at(port);
    if (usrsctp_bind(sock, (struct sockaddr *)&own, sizeof(own)) < 0 ||
        usrsctp_listen(sock, 100) < 0) {
        perror("listen");
        exit(1);
    }
    puts("ready");
    fflush(stdout);
    for (;;) {
        struct socket *client = usrsctp_accept(sock, NULL, NULL);
        pthread_t thread;
        if (client && !pthread_create(&thread, NULL, echo, client)) {
            pthread_detach(thread);
        }
    }
}

struct half {
    struct socket *sock;
    const char *bytes;
    size_t len;
};

static void *there(void *argument) {
    const struct half *half = argument;
    for (size_t at = 0; at < half->len; at += MESSAGE) {
        size_t left = half->len - at;
        if (give(half->sock, half->bytes + at, left < MESSAGE ? left : MESSAGE)) {
            break;
        }
    }
    return NULL;
}

/* What went wrong, or nothing. */
static const char *exchange(struct socket *sock, size_t len, unsigned int random) {
    char *bytes = malloc(len), buffer[MESSAGE];
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (char)((random = random * 1103515245 + 12345) >> 16);
    }
    struct half half = {sock, bytes, len};
    pthread_t thread;
    pthread_create(&thread, NULL, there, &half);
    size_t came = 0;
    const char *wrong = NULL;
    while (came < len && !wrong) {
        ssize_t n = receive(sock, buffer, sizeof(buffer));
        if (n <= 0) {
            wrong = "the association is over";
        } else if (came + (size_t)n > len || memcmp(bytes + came, buffer, (size_t)n)) {
            wrong = "other bytes came back";
        }
        came += n > 0 ? (size_t)n : 0;
    }
    pthread_join(thread, NULL);
    free(bytes);
    return wrong;
}

static void *work(void *unused) {
    (void)unused;
    for (;;) {
        pthread_mutex_lock(&lock);
        int number = next_number++;
        pthread_mutex_unlock(&lock);
        if (number >= count) {
            return NULL;
        }
        unsigned int random = (unsigned int)(seed + number);
        size_t len = (size_t)pow(1e6, (double)rand_r(&random) / RAND_MAX);
        struct socket *sock = make();
        struct sockaddr_in peer = at(port);
        const char *wrong = usrsctp_connect(sock, (struct sockaddr *)&peer, sizeof(peer)) < 0
                                ? "no association"
                                : exchange(sock, len, random);
        usrsctp_close(sock);
        pthread_mutex_lock(&lock);
        total += wrong ? 0 : len;
        failures += wrong != NULL;
        if (wrong) {
            printf("association %d of %zu bytes: %s\n", number, len, wrong);
        }
        pthread_mutex_unlock(&lock);
    }
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: sctp_many UDP_PORT server|client PORT PEER_UDP_PORT ...\n");
        return 2;
    }
    port = atoi(argv[3]), peer_udp = atoi(argv[4]);
    usrsctp_init((uint16_t)atoi(argv[1]), NULL, NULL);
    usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
    if (strcmp(argv[2], "server") == 0 || argc < 8) {
        serve();
    }
    count = atoi(argv[5]), seed = atoi(argv[7]);
    int at_once = atoi(argv[6]);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pthread_t threads[256];
    at_once = at_once > 256 ? 256 : at_once;
    for (int i = 0; i < at_once; i++) {
        pthread_create(&threads[i], NULL, work, NULL);
    }
    for (int i = 0; i < at_once; i++) {
        pthread_join(threads[i], NULL);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("%d associations, %d failed, %llu bytes there and back in %.1f s\n", count, failures,
           total, (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
    return failures != 0;
}
