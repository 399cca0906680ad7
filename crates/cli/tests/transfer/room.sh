# A sender and receivers in namespaces of their own on one bridge: fontis in $0, how many receivers
# in $1, the percentage of packets that each loses on its own in $2 (one for all, or one for each,
# with commas), the rate of the cast in $3, and in $4 what happens to the first receiver:
# late:SECONDS, wait:SECONDS (the same, and nothing is sent before), kill:SECONDS, pause:SECONDS
# (for five seconds), deaf:1 (it listens on another interface), link:RATE (a bottleneck that all
# share, with a queue of 50 ms), or nothing; or one-way (eight rounds for a loss of 20 %); or stream
# (the file as a stream of 2 Mbit/s). Further arguments are those of fontis cast. Prints the last
# event of each receiver, and the sender's last line.
fontis=$0; receivers=$1; losses=$2; rate=$3; happens=$4; shift 4
unshare -n sleep 120 & sender=$!
pids=$sender
own() { [ "$(readlink /proc/$1/ns/net)" != "$(readlink /proc/self/ns/net)" ]; }
trap 'kill $pids $caster 2>/dev/null' EXIT
ip link add room type bridge mcast_snooping 0 || exit 77
ip link set room up
join() { # a namespace and its address
    for _ in 1 2 3 4 5 6 7 8 9 10; do own $1 && break; sleep 0.1; done
    ip link add port$2 type veth peer name eth0 netns $1 || exit 77
    ip link set port$2 master room up
    nsenter -t $1 -n ip address add 10.8.0.$2/24 dev eth0
    nsenter -t $1 -n ip link set lo up
    nsenter -t $1 -n ip link set eth0 up
    # Each packet is lost or not on its own, not with those that left with it.
    nsenter -t $1 -n ethtool -K eth0 tso off gso off gro off tx-udp-segmentation off \
        > /dev/null 2>&1
}
join $sender 250
i=0
while [ $i -lt $receivers ]; do
    i=$((i + 1))
    unshare -n sleep 120 & pid=$!
    pids="$pids $pid"
    eval "receiver$i=$pid"
    join $pid $i
    loss=$(echo "$losses" | cut -d, -f$i)
    [ -n "$loss" ] || loss=$(echo "$losses" | cut -d, -f1)
    if [ "$loss" != 0 ]; then
        nsenter -t $pid -n nft -f - <<END || exit 77
table netdev room {
    chain lossy {
        type filter hook ingress device eth0 priority 0;
        udp dport 4436 numgen random mod 1000 < $((loss * 10)) drop
    }
}
END
    fi
done
: > casting
rm -rf got[0-9]*
case $happens in link:*)
    nsenter -t $sender -n tc qdisc add dev eth0 root tbf rate ${happens#*:} burst 20kb \
        latency 50ms || exit 77 ;;
esac
expected=$receivers
[ "${happens%%:*}" = kill ] && expected=$((receivers - 1))
start=$expected
[ "${happens%%:*}" = late ] && start=$((receivers - 1))
options="--listen 10.8.0.250:4435 --receivers $expected --start $start --public"
[ "$happens" = one-way ] && options="--one-way --loss 20% --rounds 8"
what=served/file
if [ "$happens" = stream ]; then
    what=-
    mkfifo made
    while dd bs=25000 count=1 status=none of=piece && [ -s piece ]; do
        cat piece
        sleep 0.1
    done < served/file > made &
    exec < made
fi
nsenter -t $sender -n $fontis cast $what --rate $rate --json $options "$@" > casting <&0 &
caster=$!
until [ -s casting ]; do sleep 0.1; done
url=$(sed 's/.*"\(fontis:[^"]*\)".*/\1/; q' casting)
i=0
joins=
while [ $i -lt $receivers ]; do
    i=$((i + 1))
    eval "pid=\$receiver$i"
    (
        case $i$happens in 1late:* | 1wait:*) sleep ${happens#*:} ;; esac
        on=
        if [ $i = 1 ] && [ "${happens%%:*}" = deaf ]; then on='--interface lo'; fi
        exec nsenter -t $pid -n $fontis join "$url" got$i --json --force $on > joined$i 2> said$i
    ) & one=$!
    joins="$joins $one"
    [ $i = 1 ] && first=$one
done
case $happens in
kill:*) sleep ${happens#*:}; kill -9 $first ;;
pause:*) sleep ${happens#*:}; kill -STOP $first; sleep 5; kill -CONT $first ;;
esac
for one in $joins; do wait $one; done
i=0
while [ $i -lt $receivers ]; do
    i=$((i + 1))
    same=different
    cmp -s got$i served/file && same=same
    echo "$i $same $(tail -n 1 joined$i) $(cat said$i)"
done
# A sender that hears nothing goes on to its last round.
[ "$happens" = one-way ] && wait $caster
sleep 0.3
grep '"event":"cast"' casting | tail -n 1
