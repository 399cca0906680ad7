// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Replays events on the law of fld.bpf.c in an ordinary program, for a test that compares it with
 * the simulator's (crates/lab/tests/kernel.rs). What the kernel does around the law is done here:
 * it asks for a threshold when losses begin a recovery or a timer expires, and sets the window to
 * it when the recovery ends.
 *
 * Lines of standard input, all numbers of segments but those of bytes:
 *   n WINDOW                      a flow begins
 *   a ACKED FULL SENT DELIVERED   an acknowledgement, whether the window is full, bytes so far
 *   r LOST                        losses begin a recovery
 *   l LOST                        more are found in it
 *   e                             it ends
 *   t OUTSTANDING                 the timer expires
 *   o                             all that was outstanding then is acknowledged
 *   s WINDOW THRESHOLD            both are set
 * It answers each acknowledgement with window and threshold.
 */

/* The place of a socket's private area and of a bit, which the loader finds in a kernel. */
#define is_cwnd_limited private_begin, private_rest[128]; u8 limited_bit
#define __builtin_preserve_field_info(field, kind) ((kind) ? 63 : 129)
#include "fld.bpf.c"

#include <stdio.h>
#include <string.h>

int main(void)
{
	static struct tcp_sock tp;
	u64 context[3] = { (u64)&tp };
	char line[100], kind;
	unsigned long long a, b, c, d;

	while (fgets(line, sizeof(line), stdin)) {
		a = b = c = d = 0;
		if (sscanf(line, "%c %llu %llu %llu %llu", &kind, &a, &b, &c, &d) < 1)
			return 1;
		switch (kind) {
		case 'n':
			memset(&tp, 0, sizeof(tp));
			tp.snd_cwnd = a;
			tp.snd_cwnd_clamp = ~0u;
			tp.snd_ssthresh = INFINITE;
			init(context);
			break;
		case 'a':
			tp.limited_bit = b;
			tp.bytes_sent = c;
			tp.bytes_acked = d;
			in_ack_event(context);
			context[2] = a;
			if (fld(context)->state != STATE_RECOVERY && a)
				cong_avoid(context);
			printf("%u %u\n", tp.snd_cwnd, tp.snd_ssthresh);
			break;
		case 'r':
		case 't':
			tp.lost += a;
			tp.lost_out = a;
			tp.snd_ssthresh = ssthresh(context);
			context[1] = EVENT_LOSS;
			if (kind == 't') {
				cwnd_event(context);
				tp.snd_cwnd = 1;
			}
			context[1] = kind == 't' ? 4 : STATE_RECOVERY;
			set_state(context);
			break;
		case 'l':
			tp.lost += a;
			break;
		case 'e':
			tp.snd_cwnd = tp.snd_ssthresh;
			/* fall through */
		case 'o':
			context[1] = 0;
			set_state(context);
			break;
		case 's':
			tp.snd_cwnd = a;
			tp.snd_ssthresh = b;
			break;
		default:
			return 1;
		}
	}
	return 0;
}
