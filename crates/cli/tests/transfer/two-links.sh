# A client with two links to a server, in namespaces of their own: fontis in $0, the rates of the
# links in $1 and $2, what happens a second after the transfer began in $3, the arguments of
# fontis get behind them. Prints the last event of the client, and whether the file is the same.
fontis=$0; rates="$1 $2"; happens=$3; shift 3
unshare -n sleep 60 & client=$!
trap 'kill $client $server 2>/dev/null' EXIT
in_client() { nsenter -t $client -n "$@"; }
for _ in 1 2 3 4 5 6 7 8 9 10; do
    [ "$(readlink /proc/$client/ns/net)" != "$(readlink /proc/self/ns/net)" ] && break
    sleep 0.1
done
ip link set lo up && ip address add 10.9.9.9/32 dev lo || exit 77
in_client ip link set lo up || exit 77
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
$fontis serve served --listen 10.9.9.9:4433 --public --json > listening &
server=$!
until [ -s listening ]; do sleep 0.1; done
url=$(sed 's/.*"\(fontis:[^"]*\)".*/\1/; s|/?|/file?|; q' listening)
(sleep 1; eval "$happens") >&2 &
in_client $fontis get "$url" got --json --force "$@" | tail -n 1
cmp got served/file && echo same
