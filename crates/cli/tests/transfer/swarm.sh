# An origin and peers of a swarm in namespaces of their own on one bridge: fontis in $0, how many
# peers in $1, the rate of each up and down in $2, that of the origin in $3, and in $4 what happens:
# leave:N (the origin ends when so many have everything), kill:SECONDS (the first peer is killed),
# late:SECONDS (the first peer comes later), or nothing. Further arguments are those of fontis get.
# Prints the last events of each peer, the time, and the bytes that the origin's interface sent.
fontis=$0; peers=$1; rate=$2; origin_rate=$3; happens=$4; shift 4
unshare -n sleep 300 & origin=$!
pids=$origin
own() { [ "$(readlink /proc/$1/ns/net)" != "$(readlink /proc/self/ns/net)" ]; }
trap 'kill $pids $caster 2>/dev/null' EXIT
ip link add room type bridge mcast_snooping 0 || exit 77
ip link set room up
join() { # a namespace, its address and its rate
    for _ in 1 2 3 4 5 6 7 8 9 10; do own $1 && break; sleep 0.1; done
    ip link add port$2 type veth peer name eth0 netns $1 || exit 77
    ip link set port$2 master room up
    nsenter -t $1 -n ip address add 10.8.0.$2/24 dev eth0
    nsenter -t $1 -n ip link set lo up
    nsenter -t $1 -n ip link set eth0 up
    for way in "nsenter -t $1 -n tc qdisc add dev eth0" "tc qdisc add dev port$2"; do
        $way root tbf rate $3 burst 40kb latency 50ms || exit 77
    done
}
join $origin 250 $origin_rate
i=0
while [ $i -lt $peers ]; do
    i=$((i + 1))
    unshare -n sleep 300 & pid=$!
    pids="$pids $pid"
    eval "peer$i=$pid"
    join $pid $i $rate
done
: > casting
rm -rf got[0-9]*
leave=
case $happens in leave:*) leave="--receivers ${happens#*:}" ;; esac
nsenter -t $origin -n $fontis cast served/file --swarm --json --public --listen 10.8.0.250:4435 \
    $leave > casting 2> casting.err &
caster=$!
until [ -s casting ]; do sleep 0.1; done
url=$(sed 's/.*"\(fontis:[^"]*\)".*/\1/; q' casting)
sent() { nsenter -t $origin -n ip -j -s link show eth0 | sed 's/.*"tx":{"bytes":\([0-9]*\).*/\1/'; }
before=$(sent)
begun=$(date +%s.%N)
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
case $happens in kill:*) sleep ${happens#*:}; kill -9 $first ;; esac
for one in $gets; do wait $one; done
ended=$(date +%s.%N)
i=0
while [ $i -lt $peers ]; do
    i=$((i + 1))
    same=different
    cmp -s got$i served/file && same=same
    echo "$i $same $(grep -h '"done"\|"shared"\|"error"' shared$i | tr '\n' ' ') $(cat said$i)"
done
echo "$begun $ended $(($(sent) - before))"
