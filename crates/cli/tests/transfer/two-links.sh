# A client with two links to a server, in namespaces of their own: fontis in $0, the rates of the
# links in $1 and $2, the rate of a bottleneck that both share in $3 if there is one, what happens a
# second after the transfer began in $4, the arguments of fontis get behind them. Prints the last
# event of the client, and whether the file is the same. If the first argument is paths, it runs
# fontis paths with the others. The server also sends over SCTP.
fontis=$0; rates="$1 $2"; bottleneck=$3; happens=$4; shift 4
unshare -n sleep 60 & client=$!
unshare -n sleep 60 & far=$!
trap 'kill $client $far $server 2>/dev/null' EXIT
in_client() { nsenter -t $client -n "$@"; }
in_far() { nsenter -t $far -n "$@"; }
own() { [ "$(readlink /proc/$1/ns/net)" != "$(readlink /proc/self/ns/net)" ]; }
for _ in 1 2 3 4 5 6 7 8 9 10; do
    own $client && own $far && break
    sleep 0.1
done
ip link set lo up || exit 77
in_client ip link set lo up || exit 77
ip link add near type veth peer name far netns $far || exit 77
ip address add 10.9.9.1/24 dev near
ip link set near up
echo 1 > /proc/sys/net/ipv4/ip_forward
in_far ip address add 10.9.9.9/24 dev far
in_far ip link set lo up
in_far ip link set far up
in_far ip route add default via 10.9.9.1
if [ -n "$bottleneck" ]; then
    in_far tc qdisc add dev far root tbf rate $bottleneck burst 30k limit 200k || exit 77
fi
link=0
for rate in $rates; do
    link=$((link + 1))
    ip link add server$link type veth peer name client$link netns $client || exit 77
    ip address add 10.$link.0.1/24 dev server$link
    ip link set server$link up
    in_client ip address add 10.$link.0.2/24 dev client$link
    in_client ip link set client$link up
    in_client ip route add default via 10.$link.0.1 dev client$link metric ${link}00
    tc qdisc add dev server$link root tbf rate $rate burst 30k limit 200k || exit 77
done
nsenter -t $far -n $fontis serve served --listen 10.9.9.9:4433 --public --json \
    --transport sctp > listening &
server=$!
until [ -s listening ]; do sleep 0.1; done
url=$(sed 's/.*"\(fontis:[^"]*\)".*/\1/; s|/?|/file?|; q' listening)
(sleep 1; eval "$happens") >&2 &
if [ "$1" = paths ]; then
    shift
    in_client $fontis paths "$url" --json "$@"
    exit
fi
in_client $fontis get "$url" got --json --force "$@" | tail -n 1
cmp got served/file && echo same
