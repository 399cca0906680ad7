# A dumbbell in ns-2.35, for comparison: ns dumbbell.tcl FLOWS MBPS RTT_MS BUFFER_PACKETS LOSS SECONDS WARMUP ALGORITHM SEED DELAYED_ACK
#
# TCP/Linux (or Sack1, for "reno") with 1460 bytes of payload in packets of 1500, a window without limit,
# acknowledgements of every packet or (DELAYED_ACK 1) of every second, and the random overhead per packet that ns-2's manual recommends against phase effects. Prints one
# line: goodput in Mbit/s, loss rate at the bottleneck, Jain's index, mean queue in packets, packets through the
# bottleneck, events.
if {$argc != 10} { puts stderr "usage: ns dumbbell.tcl FLOWS MBPS RTT_MS BUFFER_PACKETS LOSS SECONDS WARMUP ALGORITHM SEED DELAYED_ACK"; exit 2 }
lassign $argv flows mbps rtt buffer loss seconds warmup algorithm seed delayed
ns-random $seed

# Headers that no packet here has only cost memory and time; NS2_HEADERS=all keeps them, as ns-2 does unless it is told.
if {![info exists env(NS2_HEADERS)]} {
    remove-all-packet-headers
    add-packet-header IP TCP Flags
}
set ns [new Simulator]
# What most of its users do: a line for each packet at each hop. NS2_TRACE names the file.
if {[info exists env(NS2_TRACE)]} { $ns trace-all [open $env(NS2_TRACE) w] }

set left [$ns node]
set right [$ns node]
$ns duplex-link $left $right ${mbps}Mb [expr {$rtt / 2.0}]ms DropTail
$ns queue-limit $left $right $buffer
$ns queue-limit $right $left 1000000
set queue [[$ns link $left $right] queue]
set monitor [$ns monitor-queue $left $right ""]
set integral [$monitor get-bytes-integrator]
set packets_integral [$monitor get-pkts-integrator]
if {$loss > 0} {
    set errors [new ErrorModel]
    $errors set rate_ $loss
    $errors unit pkt
    set generator [new RNG]
    $generator seed [expr {$seed + 1}]
    set uniform [new RandomVariable/Uniform]
    $uniform use-rng $generator
    $errors ranvar $uniform
    $ns link-lossmodel $errors $left $right
    # The link would have the monitor count these as drops of the queue.
    $errors drop-target [new Agent/Null]
}

# Mbit/s; the bench has them as fast as ours.
set access [expr {[info exists env(NS2_ACCESS)] ? $env(NS2_ACCESS) : max(1000, $mbps)}]
for {set i 0} {$i < $flows} {incr i} {
    set from [$ns node]
    set to [$ns node]
    $ns duplex-link $from $left ${access}Mb 0ms DropTail
    $ns duplex-link $right $to 100000Mb 0ms DropTail
    $ns queue-limit $from $left 1000000
    $ns queue-limit $right $to 1000000
    if {$algorithm eq "reno"} {
        set tcp [new Agent/TCP/Sack1]
    } else {
        set tcp [new Agent/TCP/Linux]
        $ns at 0 "$tcp select_ca $algorithm"
    }
    $tcp set packetSize_ 1460
    $tcp set window_ 10000000
    $tcp set maxcwnd_ 0
    $tcp set windowInit_ 10
    $tcp set overhead_ 0.00002
    $tcp set timestamps_ true
    $tcp set ts_option_size_ 0
    $tcp set minrto_ 0.2
    $tcp set tcpTick_ 0.001
    $tcp set fid_ $i
    if {$delayed} {
        set sink [new Agent/TCPSink/Sack1/DelAck]
        $sink set interval_ 40ms
    } else {
        set sink [new Agent/TCPSink/Sack1]
    }
    $sink set ts_option_size_ 0
    $ns attach-agent $from $tcp
    $ns attach-agent $to $sink
    $ns connect $tcp $sink
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at 0 "$ftp start"
    set sinks($i) $sink
    set tcps($i) $tcp
}

proc begin {} {
    global flows tcps acked monitor drops arrivals departures packets_integral integral_start
    for {set i 0} {$i < $flows} {incr i} { set acked($i) [$tcps($i) set ack_] }
    set drops [$monitor set pdrops_]
    set arrivals [$monitor set parrivals_]
    set departures [$monitor set pdepartures_]
    $packets_integral newpoint [[Simulator instance] now] [$monitor set pkts_]
    set integral_start [$packets_integral set sum_]
}

proc finish {} {
    global ns flows tcps acked monitor drops arrivals departures packets_integral integral_start seconds warmup
    set span [expr {$seconds - $warmup}]
    set sum 0.0
    set squares 0.0
    for {set i 0} {$i < $flows} {incr i} {
        set rate [expr {([$tcps($i) set ack_] - $acked($i)) * 1460 * 8e-6 / $span}]
        set sum [expr {$sum + $rate}]
        set squares [expr {$squares + $rate * $rate}]
    }
    set jain [expr {$squares > 0 ? $sum * $sum / ($flows * $squares) : 0}]
    $packets_integral newpoint [$ns now] [$monitor set pkts_]
    set mean [expr {([$packets_integral set sum_] - $integral_start) / $span}]
    set lost [expr {double([$monitor set pdrops_] - $drops) / max(1, [$monitor set parrivals_] - $arrivals)}]
    puts [format "%.3f %.6f %.4f %.2f %d" $sum $lost $jain $mean [$monitor set pdepartures_]]
    exit 0
}

$ns at $warmup begin
$ns at $seconds finish
$ns run
