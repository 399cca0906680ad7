# An origin and peers of a swarm in namespaces of their own on one bridge: fontis in $0, how many
# peers in $1, their rates in $2 (RATE or UP/DOWN each, with commas, over again if they are few),
# that of the origin in $3, the percentage of packets that every other peer loses in $4, and in $5
# what happens: leave:N (the origin is ended when so many have everything), kill:SECONDS (the first
# peer is killed), late:SECONDS (it comes later), group:RATE:DEAF (the origin casts at that rate,
# too, and the first peers do not hear it), or nothing. Further arguments are those of fontis get.
# Prints the last events of each peer, and then how long it took, what the origin sent, and how many
# blocks came from a group.
fontis=$0; peers=$1; rates=$2; origin_rate=$3; loss=$4; happens=$5; shift 5
unshare -n sleep 600 & origin=$!
pids=$origin
own() { [ "$(readlink /proc/$1/ns/net)" != "$(readlink /proc/self/ns/net)" ]; }
trap 'kill $pids $caster 2>/dev/null' EXIT
ip link add room type bridge mcast_snooping 0 || exit 77
ip link set room up
join() { # a namespace, its address and its rates
    for _ in 1 2 3 4 5 6 7 8 9 10; do own $1 && break; sleep 0.1; done
    ip link add port$2 type veth peer name eth0 netns $1 || exit 77
    ip link set port$2 master room up
    nsenter -t $1 -n ip address add 10.8.0.$2/24 dev eth0
    nsenter -t $1 -n ip link set lo up
    nsenter -t $1 -n ip link set eth0 up
    nsenter -t $1 -n ethtool -K eth0 tso off gso off gro off tx-udp-segmentation off \
        > /dev/null 2>&1
    nsenter -t $1 -n tc qdisc add dev eth0 root tbf rate ${3%/*} burst 20kb latency 50ms || exit 77
    tc qdisc add dev port$2 root tbf rate ${3#*/} burst 20kb latency 50ms || exit 77
}
join $origin 250 $origin_rate
count=$(echo "$rates" | tr , '\n' | wc -l)
i=0
while [ $i -lt $peers ]; do
    i=$((i + 1))
    unshare -n sleep 600 & pid=$!
    pids="$pids $pid"
    eval "peer$i=$pid"
    join $pid $i $(echo "$rates" | cut -d, -f$(((i - 1) % count + 1)))
    if [ "$loss" != 0 ] && [ $((i % 2)) = 0 ]; then
        nsenter -t $pid -n nft -f - <<END || exit 77
table netdev room {
    chain lossy {
        type filter hook ingress device eth0 priority 0;
        meta l4proto udp numgen random mod 1000 < $((loss * 10)) drop
    }
}
END
    fi
done
: > casting
rm -rf got[0-9]*
leave=
case $happens in nothing) leave="--receivers $peers" ;; esac
case $happens in group:*)
    rate=${happens#*:}
    leave="--receivers $peers --rate ${rate%:*}"
    i=0
    while [ $i -lt ${rate#*:} ]; do
        i=$((i + 1))
        eval "pid=\$peer$i"
        nsenter -t $pid -n nft -f - <<END || exit 77
table netdev deaf {
    chain group {
        type filter hook ingress device eth0 priority 0;
        udp dport 4436 drop
    }
}
END
    done ;;
esac
nsenter -t $origin -n $fontis cast served/file --swarm --json --public --listen 10.8.0.250:4435 \
    $leave > casting 2> casting.err &
caster=$!
until [ -s casting ]; do sleep 0.1; done
url=$(sed 's/.*"\(fontis:[^"]*\)".*/\1/; q' casting)
sent() {
    nsenter -t $origin -n ip -j -s link show eth0 | sed 's/.*"tx":{"bytes":\([0-9]*\).*/\1/'
}
before=$(sent)
begun=$(date +%s%N)
i=0
gets=
while [ $i -lt $peers ]; do
    i=$((i + 1))
    eval "pid=\$peer$i"
    (
        case $i$happens in 1late:*) sleep ${happens#*:} ;; esac
        exec nsenter -t $pid -n $fontis get --share "$url" got$i --json --force "$@" \
            > shared$i 2> said$i
    ) & one=$!
    gets="$gets $one"
    [ $i = 1 ] && first=$one
done
# Who has met nobody when the origin leaves cannot be introduced any more.
count_of() { grep -l "$1" shared[0-9]* | wc -l; }
case $happens in
kill:*) sleep ${happens#*:}; kill -9 $first ;;
leave:*)
    until [ $(count_of '"met"\|"done"') = $peers ] && [ $(count_of '"done"') -ge ${happens#*:} ]; do
        sleep 0.05
    done
    kill -INT $caster
    ;;
esac
for one in $gets; do wait $one; done
case $happens in nothing | group:*) wait $caster || exit 1 ;; esac
took=$((($(date +%s%N) - begun) / 1000000))
i=0
while [ $i -lt $peers ]; do
    i=$((i + 1))
    same=different
    cmp -s got$i served/file && same=same
    echo "$i $same $(grep -h '"done"\|"error"' shared$i | tail -n 1) $(cat said$i)"
done
by_group=$(cat shared[0-9]* | grep -c '"event":"block".*"remote":"239[.]')
echo "{\"milliseconds\": $took, \"origin_sent\": $(($(sent) - before)), \"by_group\": $by_group}"
