// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * FLD_TCP for Linux: bold while a flow is short, Reno when it is long (G. R. Moktan, "Resource
 * Assignments in Network Data Transport", Aalto University, 2020). The law is that of `fld` in the
 * simulator (crates/proto/src/congestion/fld); docs/fld.md states it.
 *
 * build.sh makes fld.bpf.o of this file. `fontis kernel load fld` loads it, and so does
 * `bpftool struct_ops register fld.bpf.o`.
 */

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define RELOCATED __attribute__((preserve_access_index))

/* The length of a short flow in bytes, and what an acknowledged segment adds to its window. */
#define THRESHOLD (2ULL << 20)
#define INCREASE 2
#define LEAST_SSTHRESH 2
/* "TCP_INFINITE_SSTHRESH": no loss so far. */
#define INFINITE 0x7fffffff
/* States of a sender ("enum tcp_ca_state"), and the event of a timeout ("enum tcp_ca_event"). */
#define STATE_RECOVERY 3
#define EVENT_LOSS 4

/* The fields of the kernel's types that are used. Their places are found when it is loaded. */
struct sock {
} RELOCATED;

struct inet_connection_sock {
	u64 icsk_ca_priv[13];
} RELOCATED;

struct tcp_sock {
	u8 is_cwnd_limited : 1;
	u32 snd_cwnd;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 snd_ssthresh;
	u32 max_packets_out;
	u32 lost;
	u32 lost_out;
	u64 bytes_sent;
	u64 bytes_retrans;
	u64 bytes_acked;
} RELOCATED;

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 state);
	void (*cwnd_event)(struct sock *sk, int event);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	char name[16];
	void (*init)(struct sock *sk);
};

/* The state of a flow, in its socket. */
struct fld {
	/* The window before the last reduction, and the socket's count of losses then. */
	u32 prior;
	u32 lost_before;
	/* The flow is short, for its losses and for its growth. */
	u8 is_bold;
	u8 is_boosted;
	/* The last reduction is one segment for each loss, and more may be found. */
	u8 is_relentless;
	u8 state;
};

static inline struct tcp_sock *tcp(u64 *context)
{
	return (struct tcp_sock *)context[0];
}

static inline struct fld *fld(u64 *context)
{
	return (struct fld *)((struct inet_connection_sock *)context[0])->icsk_ca_priv;
}

static inline u32 at_least(u32 value, u32 least)
{
	return value < least ? least : value;
}

/* "is_cwnd_limited", a bit whose place differs between kernels. */
static inline int is_limited_by_window(struct tcp_sock *tp)
{
	u32 offset = __builtin_preserve_field_info(tp->is_cwnd_limited, 0);
	u32 left = __builtin_preserve_field_info(tp->is_cwnd_limited, 4);
	u32 right = __builtin_preserve_field_info(tp->is_cwnd_limited, 5);
	u64 byte = *((u8 *)tp + offset);

	return byte << left >> right;
}

/* Whether the sender uses its window; in slow start, whether it could use the next one. */
static inline int is_full(struct tcp_sock *tp, u32 increase)
{
	if (is_limited_by_window(tp))
		return 1;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < (1 + increase) * tp->max_packets_out;
}

/* Ends what is for short flows. */
static inline void measure(struct tcp_sock *tp, struct fld *ca)
{
	if (tp->bytes_sent - tp->bytes_retrans > THRESHOLD)
		ca->is_boosted = 0;
	if (tp->bytes_acked > THRESHOLD)
		ca->is_bold = 0;
}

SEC("struct_ops/init")
void init(u64 *context)
{
	struct fld *ca = fld(context);

	ca->prior = 0;
	ca->lost_before = 0;
	ca->is_bold = 1;
	ca->is_boosted = 1;
	ca->is_relentless = 0;
	ca->state = 0;
}

SEC("struct_ops/cong_avoid")
void cong_avoid(u64 *context)
{
	struct tcp_sock *tp = tcp(context);
	struct fld *ca = fld(context);
	u32 acked = context[2];
	u32 increase, grown, window = tp->snd_cwnd;
	u32 count, more;

	measure(tp, ca);
	increase = ca->is_boosted && tp->snd_ssthresh == INFINITE ? INCREASE : 1;
	if (!is_full(tp, increase))
		return;
	if (window < tp->snd_ssthresh) {
		grown = increase * acked;
		if (grown > tp->snd_ssthresh - window)
			grown = tp->snd_ssthresh - window;
		window += grown;
		acked -= grown < acked ? grown : acked;
	}
	window = at_least(window, 1);
	if (acked) {
		count = tp->snd_cwnd_cnt + acked;
		more = count / window;
		tp->snd_cwnd_cnt = count - more * window;
		window += more;
	}
	if (window > tp->snd_cwnd_clamp)
		window = tp->snd_cwnd_clamp;
	tp->snd_cwnd = window;
}

/*
 * The kernel asks for it when losses or a mark begin a reduction, and after a timeout. What is lost
 * then and not delivered since are the losses that began it; a mark loses nothing.
 */
SEC("struct_ops/ssthresh")
u32 ssthresh(u64 *context)
{
	struct tcp_sock *tp = tcp(context);
	struct fld *ca = fld(context);
	u32 lost = tp->lost_out;

	measure(tp, ca);
	ca->prior = tp->snd_cwnd;
	ca->lost_before = tp->lost - lost;
	ca->is_relentless = ca->is_bold && lost > 0;
	tp->snd_cwnd_cnt = 0;
	if (!ca->is_relentless)
		return at_least(ca->prior / 2, LEAST_SSTHRESH);
	return at_least(ca->prior > lost ? ca->prior - lost : 0, LEAST_SSTHRESH);
}

SEC("struct_ops/set_state")
void set_state(u64 *context)
{
	fld(context)->state = context[1];
}

/* Losses that are found later in a recovery count too. */
SEC("struct_ops/in_ack_event")
void in_ack_event(u64 *context)
{
	struct tcp_sock *tp = tcp(context);
	struct fld *ca = fld(context);
	u32 lost = tp->lost - ca->lost_before;

	if (ca->state == STATE_RECOVERY && ca->is_relentless)
		tp->snd_ssthresh =
			at_least(ca->prior > lost ? ca->prior - lost : 0, LEAST_SSTHRESH);
}

/* After a timeout a short flow may grow back to its window, and a long one to half of it. */
SEC("struct_ops/cwnd_event")
void cwnd_event(u64 *context)
{
	struct tcp_sock *tp = tcp(context);
	struct fld *ca = fld(context);

	if ((int)context[1] != EVENT_LOSS || !ca->is_relentless)
		return;
	ca->is_relentless = 0;
	tp->snd_ssthresh = at_least(ca->prior, LEAST_SSTHRESH);
}

/* The reduction was for nothing. */
SEC("struct_ops/undo_cwnd")
u32 undo_cwnd(u64 *context)
{
	struct fld *ca = fld(context);

	return at_least(tcp(context)->snd_cwnd, ca->prior);
}

/* Windows of send buffer, so that a window that triples finds data. */
SEC("struct_ops/sndbuf_expand")
u32 sndbuf_expand(u64 *context)
{
	return 1 + INCREASE;
}

SEC(".struct_ops")
struct tcp_congestion_ops fld_ops = {
	.ssthresh = (void *)ssthresh,
	.cong_avoid = (void *)cong_avoid,
	.set_state = (void *)set_state,
	.cwnd_event = (void *)cwnd_event,
	.in_ack_event = (void *)in_ack_event,
	.undo_cwnd = (void *)undo_cwnd,
	.sndbuf_expand = (void *)sndbuf_expand,
	.name = "fld",
	.init = (void *)init,
};

SEC("license")
char fld_license[] = "Dual MIT/GPL";

/* The hash of this file, by which a test sees that the object was made of it. */
SEC("source")
char fld_source[] = SOURCE_SHA256;
