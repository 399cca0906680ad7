/* Many associations of the kernel's SCTP: an echo server, or its client.
 *
 * sctp_kernel server ADDRESS PORT
 * sctp_kernel client ADDRESS PORT COUNT AT_ONCE SEED
 *
 * A client sends 1 to 1,000,000 bytes over each association, log-uniform, and compares what comes
 * back; it prints how many have failed. It is linked statically and runs in the guest of
 * scripts/sctp_kernel.py. */

#include <arpa/inet.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE 8000

static struct sockaddr_in place;

static int make(void) {
    int sock = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    if (sock < 0) {
        perror("socket");
        exit(1);
    }
    return sock;
}

static void serve(void) {
    int sock = make();
    if (bind(sock, (struct sockaddr *)&place, sizeof(place)) || listen(sock, 128)) {
        perror("listen");
        exit(1);
    }
    puts("listening");
    fflush(stdout);
    for (;;) {
        int client = accept(sock, NULL, NULL);
        if (client >= 0 && fork() == 0) {
            char buffer[MESSAGE];
            ssize_t n;
            while ((n = recv(client, buffer, sizeof(buffer), 0)) > 0 &&
                   send(client, buffer, (size_t)n, 0) == n) {
            }
            _exit(0);
        }
        close(client);
        while (waitpid(-1, NULL, WNOHANG) > 0) {
        }
    }
}

/* Whether all bytes came back as they were. */
static int exchange(size_t len, unsigned int random) {
    char *bytes = malloc(len), buffer[MESSAGE];
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (char)((random = random * 1103515245 + 12345) >> 16);
    }
    int sock = make();
    size_t came = 0;
    int is_good = !connect(sock, (struct sockaddr *)&place, sizeof(place));
    pid_t there = is_good ? fork() : -1;
    if (there == 0) {
        for (size_t at = 0; at < len; at += MESSAGE) {
            size_t left = len - at;
            if (send(sock, bytes + at, left < MESSAGE ? left : MESSAGE, 0) < 0) {
                _exit(1);
            }
        }
        _exit(0);
    }
    while (is_good && came < len) {
        ssize_t n = recv(sock, buffer, sizeof(buffer), 0);
        is_good = n > 0 && came + (size_t)n <= len && !memcmp(bytes + came, buffer, (size_t)n);
        came += n > 0 ? (size_t)n : 0;
    }
    if (there > 0) {
        waitpid(there, NULL, 0);
    }
    close(sock);
    free(bytes);
    return is_good;
}

int main(int argc, char **argv) {
    if (argc < 4) {
        fprintf(stderr, "usage: sctp_kernel server|client ADDRESS PORT [COUNT AT_ONCE SEED]\n");
        return 2;
    }
    place.sin_family = AF_INET;
    place.sin_port = htons((uint16_t)atoi(argv[3]));
    inet_pton(AF_INET, argv[2], &place.sin_addr);
    if (argc < 7) {
        serve();
    }
    int count = atoi(argv[4]), at_once = atoi(argv[5]), seed = atoi(argv[6]), failures = 0;
    for (int worker = 0; worker < at_once; worker++) {
        if (fork() == 0) {
            int failed = 0;
            for (int number = worker; number < count; number += at_once) {
                unsigned int random = (unsigned int)(seed + number);
                failed += !exchange((size_t)pow(1e6, (double)rand_r(&random) / RAND_MAX), random);
            }
            _exit(failed > 255 ? 255 : failed);
        }
    }
    for (int status; wait(&status) > 0;) {
        failures += WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    }
    printf("%d associations, %d failed\n", count, failures);
    return failures != 0;
}
