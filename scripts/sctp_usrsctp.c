/* An echo server or its client over usrsctp, with authenticated chunks and addresses that change.
 *
 * sctp_usrsctp UDP_PORT server PORT PEER_UDP_PORT KINDS [-|KEY [OTHER]]
 * sctp_usrsctp UDP_PORT client PORT PEER_UDP_PORT KINDS [-|KEY [MESSAGES [SERVER]]]
 *
 * Both are at 127.0.0.1, or the peer of a client at SERVER. KINDS are types of chunks that the
 * other end must authenticate, with commas; KEY is a shared key of number 7. A server with OTHER
 * adds that address after 20 messages, asks for it as the primary one after 60 and removes it after
 * 140. Prints what it is told of addresses. PATH_FAILURES in the environment says after how many
 * timeouts a path is left. It belongs to scripts/sctp_usrsctp.py. */

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <usrsctp.h>

#define MOST (1 << 20)
#define KEY_NUMBER 7

static char buffer[MOST], wanted[MOST];

static void must(int result, const char *what) {
    if (result < 0) {
        perror(what);
        exit(1);
    }
}

static void set(struct socket *sock, int option, const void *value, size_t len) {
    must(usrsctp_setsockopt(sock, IPPROTO_SCTP, option, value, (socklen_t)len), "setsockopt");
}

static struct sockaddr_in at(const char *ip, int port) {
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    inet_pton(AF_INET, ip, &in.sin_addr);
    return in;
}

static void configure(struct socket *sock, int peer_udp, char *kinds, const char *secret) {
    const int on = 1, size = MOST;
    set(sock, SCTP_RECVRCVINFO, &on, sizeof(on));
    must(usrsctp_setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), "SO_RCVBUF");
    must(usrsctp_setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), "SO_SNDBUF");
    struct sctp_udpencaps encaps = {.sue_port = htons((uint16_t)peer_udp)};
    encaps.sue_address.ss_family = AF_INET;
    set(sock, SCTP_REMOTE_UDP_ENCAPS_PORT, &encaps, sizeof(encaps));
    for (char *kind = strtok(kinds, ","); kind; kind = strtok(NULL, ",")) {
        struct sctp_authchunk chunk = {.sauth_chunk = (uint8_t)atoi(kind)};
        set(sock, SCTP_AUTH_CHUNK, &chunk, sizeof(chunk));
    }
    if (secret) {
        size_t len = strlen(secret);
        struct sctp_authkey *key = calloc(1, sizeof(*key) + len);
        key->sca_keynumber = KEY_NUMBER;
        key->sca_keylength = (uint16_t)len;
        memcpy(key->sca_key, secret, len);
        set(sock, SCTP_AUTH_KEY, key, sizeof(*key) + len);
        struct sctp_authkeyid id = {.scact_keynumber = KEY_NUMBER};
        set(sock, SCTP_AUTH_ACTIVE_KEY, &id, sizeof(id));
    }
    struct sctp_event event = {.se_type = SCTP_PEER_ADDR_CHANGE, .se_on = 1};
    set(sock, SCTP_EVENT, &event, sizeof(event));
}

static void tell(const union sctp_notification *notification) {
    static const char *const names[] = {"?",       "available", "unreachable", "removed",
                                        "added",   "primary",   "confirmed"};
    if (notification->sn_header.sn_type != SCTP_PEER_ADDR_CHANGE) {
        return;
    }
    const struct sockaddr_in *in =
        (const struct sockaddr_in *)&notification->sn_paddr_change.spc_aaddr;
    uint32_t state = notification->sn_paddr_change.spc_state;
    char text[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &in->sin_addr, text, sizeof(text));
    printf("%s %s\n", text, names[state <= 6 ? state : 0]);
    fflush(stdout);
}

static ssize_t receive(struct socket *sock, char *into, size_t len, uint16_t *stream) {
    for (;;) {
        struct sctp_rcvinfo info = {0};
        struct sockaddr_in from;
        socklen_t info_len = sizeof(info), from_len = sizeof(from);
        unsigned int type = 0;
        int flags = 0;
        ssize_t n = usrsctp_recvv(sock, into, len, (struct sockaddr *)&from, &from_len, &info,
                                  &info_len, &type, &flags);
        if (n > 0 && flags & MSG_NOTIFICATION) {
            tell((const union sctp_notification *)into);
            continue;
        }
        *stream = info.rcv_sid;
        return n;
    }
}

static void give(struct socket *sock, const char *from, size_t len, uint16_t stream) {
    struct sctp_sndinfo info = {.snd_sid = stream};
    ssize_t sent = usrsctp_sendv(sock, from, len, NULL, 0, &info, sizeof(info), SCTP_SENDV_SNDINFO, 0);
    must((int)sent, "sendv");
}

static void serve(struct socket *sock, int port, const char *other) {
    struct sockaddr_in own = at("127.0.0.1", port);
    must(usrsctp_bind(sock, (struct sockaddr *)&own, sizeof(own)), "bind");
    must(usrsctp_listen(sock, 1), "listen");
    puts("ready");
    fflush(stdout);
    struct socket *client = usrsctp_accept(sock, NULL, NULL);
    if (!client) {
        perror("accept");
        exit(1);
    }
    struct sockaddr_in more = at(other ? other : "0.0.0.0", port);
    uint16_t stream;
    ssize_t n;
    for (int count = 1; (n = receive(client, buffer, MOST, &stream)) > 0; count++) {
        give(client, buffer, (size_t)n, stream);
        if (other && count == 20) {
            must(usrsctp_bindx(client, (struct sockaddr *)&more, 1, SCTP_BINDX_ADD_ADDR), "add");
        } else if (other && count == 60) {
            struct sctp_setpeerprim primary = {0};
            memcpy(&primary.sspp_addr, &more, sizeof(more));
            set(client, SCTP_SET_PEER_PRIMARY_ADDR, &primary, sizeof(primary));
        } else if (other && count == 140) {
            must(usrsctp_bindx(client, (struct sockaddr *)&more, 1, SCTP_BINDX_REM_ADDR), "remove");
        }
    }
    usrsctp_close(client);
}

static void ask(struct socket *sock, const char *server, int port, unsigned int count) {
    struct sockaddr_in own = at("127.0.0.1", 0), peer = at(server, port);
    must(usrsctp_bind(sock, (struct sockaddr *)&own, sizeof(own)), "bind");
    must(usrsctp_connect(sock, (struct sockaddr *)&peer, sizeof(peer)), "connect");
    for (unsigned int number = 0; number < count; number++) {
        size_t len = 1 + number * 7919 % 9000, came = 0;
        for (size_t i = 0; i < len; i++) {
            wanted[i] = (char)(i ^ number);
        }
        give(sock, wanted, len, number % 4);
        uint16_t stream;
        ssize_t n;
        while (came < len && (n = receive(sock, buffer + came, MOST - came, &stream)) > 0) {
            came += (size_t)n;
        }
        if (came != len || memcmp(buffer, wanted, len)) {
            printf("message %u came back changed\n", number);
            exit(1);
        }
    }
    printf("%u messages there and back\n", count);
}

int main(int argc, char **argv) {
    if (argc < 6) {
        fprintf(stderr, "usage: sctp_usrsctp UDP_PORT server|client PORT PEER_UDP_PORT KINDS ...\n");
        return 2;
    }
    usrsctp_init((uint16_t)atoi(argv[1]), NULL, NULL);
    usrsctp_sysctl_set_sctp_no_csum_on_loopback(0);
    usrsctp_sysctl_set_sctp_auto_asconf(0);
    const char *failures = getenv("PATH_FAILURES");
    if (failures) {
        usrsctp_sysctl_set_sctp_path_rtx_max_default((uint32_t)atoi(failures));
    }
    struct socket *sock = usrsctp_socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    if (!sock) {
        perror("socket");
        return 1;
    }
    const char *key = argc > 6 && strcmp(argv[6], "-") ? argv[6] : NULL;
    configure(sock, atoi(argv[4]), argv[5], key);
    const char *last = argc > 7 ? argv[7] : NULL;
    if (strcmp(argv[2], "server") == 0) {
        serve(sock, atoi(argv[3]), last);
    } else {
        ask(sock, argc > 8 ? argv[8] : "127.0.0.1", atoi(argv[3]), last ? (unsigned int)atoi(last) : 100);
    }
    usrsctp_close(sock);
    /* The shutdown takes a round trip. */
    sleep(1);
    return 0;
}
