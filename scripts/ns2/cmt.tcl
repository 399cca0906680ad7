# A transfer of CMT-SCTP over two paths in ns-2.35, for comparison:
# ns cmt.tcl KBPS1 RTT1_MS KBPS2 RTT2_MS LOSS2 QUEUE_PACKETS DELAYED SECONDS SEED
#
# DELAYED is 1 for CMT's delayed SACK, 0 for one SACK a packet. All else is ns-2's default, but paths
# never count as potentially failed, which loops without end in some runs. Prints one line: fast
# retransmissions, timeouts, and the mean smoothed round-trip time of each path in ms.
if {$argc != 9} { puts stderr "usage: ns cmt.tcl KBPS1 RTT1_MS KBPS2 RTT2_MS LOSS2 QUEUE_PACKETS DELAYED SECONDS SEED"; exit 2 }
lassign $argv rate1 rtt1 rate2 rtt2 loss queue delayed seconds seed
ns-random $seed
set ns [new Simulator]
foreach end {0 1} {
    set core($end) [$ns node]
    foreach path {0 1} {
        set if($end,$path) [$ns node]
        $ns multihome-add-interface $core($end) $if($end,$path)
    }
}
foreach path {0 1} rate [list $rate1 $rate2] rtt [list $rtt1 $rtt2] {
    $ns duplex-link $if(0,$path) $if(1,$path) ${rate}Kb [expr {$rtt / 2.0}]ms DropTail
    $ns queue-limit $if(0,$path) $if(1,$path) $queue
    $ns queue-limit $if(1,$path) $if(0,$path) $queue
}
if {$loss > 0} {
    set errors [new ErrorModel]
    $errors set rate_ $loss
    $errors unit pkt
    set generator [new RNG]
    $generator seed [expr {$seed + 1}]
    set uniform [new RandomVariable/Uniform]
    $uniform use-rng $generator
    $errors ranvar $uniform
    $errors drop-target [new Agent/Null]
    $ns link-lossmodel $errors $if(0,1) $if(1,1)
}
foreach end {0 1} {
    set agent($end) [new Agent/SCTP/CMT]
    $ns multihome-attach-agent $core($end) $agent($end)
    $agent($end) set useCmtDelAck_ $delayed
    $agent($end) set useDelayedSacks_ $delayed
    $agent($end) set useCmtPF_ 0
}
set file [file tempfile name]
$agent(0) set trace_all_ 1
$agent(0) trace frCount_
$agent(0) trace timeoutCount_
$agent(0) trace rto_
$agent(0) trace cwnd_
$agent(0) attach $file
$ns connect $agent(0) $agent(1)
set ftp [new Application/FTP]
$ftp attach-agent $agent(0)
$agent(0) set-primary-destination $if(1,0)
$ns at 0.1 "$ftp start"
# Sums up the trace: each value holds until the next line of its path.
proc finish {} {
    global file name
    close $file
    set trace [open $name]
    # Lines without a peer hold bytes that are no text.
    fconfigure $trace -encoding iso8859-1
    set pattern {time: +([0-9.]+).* saddr: ([0-9]+).* srtt: ([0-9.]+).* frCount: ([0-9]+) timeoutCount: ([0-9]+)}
    while {[gets $trace line] >= 0} {
        if {![regexp $pattern $line -> time path srtt fast timeouts]} continue
        if {[info exists last($path)] && [lindex $last($path) 1] > 0} {
            lassign $last($path) before value
            set area($path) [expr {($time - $before) * $value + ([info exists area($path)] ? $area($path) : 0)}]
            set span($path) [expr {$time - $before + ([info exists span($path)] ? $span($path) : 0)}]
        }
        set last($path) [list $time $srtt]
        set expired($path) $timeouts
        set most $fast
    }
    close $trace
    file delete $name
    set sum 0
    foreach path [array names expired] { incr sum $expired($path) }
    set means {}
    foreach path [lsort [array names area]] { lappend means [format %.1f [expr {1000 * $area($path) / $span($path)}]] }
    puts "$most $sum $means"
    exit 0
}
$ns at $seconds finish
$ns run
