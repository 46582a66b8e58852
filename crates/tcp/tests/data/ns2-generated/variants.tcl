# One run of the path of ns-2's validation suite tcpVariants:
#   ns variants.tcl SENDER LIMITED_TRANSMIT DROPS...
# SENDER: Tahoe, Reno, Newreno, Sack1 or Vegas; LIMITED_TRANSMIT: 0 or 1; DROPS: which of the packets
# that come to the slow link are lost, the SYN being 0.
# Prints the rows time_s,event,packet of the traces beside this file.
remove-all-packet-headers
add-packet-header Flags IP TCP
# What the suite sets, so that traces stay as they were when its defaults changed.
Agent/TCP set precisionReduce_ false
Agent/TCP set rtxcur_init_ 6.0
Agent/TCP set updated_rttvar_ false
Agent/TCP set minrto_ 1
Agent/TCP/Newreno set newreno_changes1_ 0
Agent/TCP/Newreno set partial_window_deflation_ 0
Agent/TCP set singledup_ [lindex $argv 1]

set kind [lindex $argv 0]
set raw "/tmp/variants.[pid].tr"
set trace [open $raw w]
set ns [new Simulator]
foreach name {s1 s2 r1 k1} { set node($name) [$ns node] }
$ns duplex-link $node(s1) $node(r1) 8Mb 0ms DropTail
$ns duplex-link $node(s2) $node(r1) 8Mb 0ms DropTail
$ns duplex-link $node(r1) $node(k1) 800Kb 100ms DropTail
$ns queue-limit $node(r1) $node(k1) 8
$ns queue-limit $node(k1) $node(r1) 8
set link [$ns link $node(r1) $node(k1)]
set module [new ErrorModule Fid]
$link errormodule $module
set source TCP; set sink TCPSink
if {$kind != "Tahoe"} { set source TCP/$kind }
if {$kind == "Sack1"} { set sink TCPSink/Sack1 }
$ns trace-queue $node(r1) $node(k1) $trace
$ns trace-queue $node(k1) $node(r1) $trace
set tcp [$ns create-connection $source $node(s1) $sink $node(k1) 1]
$tcp set window_ 28
set ftp [$tcp attach-app FTP]
$ns at 1.0 "$ftp start"
set errors [new ErrorModel/List]
$errors droplist [lrange $argv 2 end]
$module insert $errors
$module bind $errors 1
# Of ns-2's trace only what is queued (+) and dropped (d) between r1 (node 2) and k1 (node 3).
proc done {} {
    global ns trace raw
    $ns flush-trace
    close $trace
    set lines [open $raw r]
    # A packet that is dropped is no longer queued.
    set rows [list]
    while {[gets $lines line] >= 0} {
        switch -glob $line {
            "+ * 2 3 *" { set event data }
            "d * 2 3 *" { set event drop; set rows [lrange $rows 0 end-1] }
            "+ * 3 2 *" { set event ack }
            default { continue }
        }
        lappend rows "[lindex $line 1],$event,[lindex $line 10]"
    }
    puts "time_s,event,packet\n[join $rows \n]"
    file delete $raw
    exit 0
}
$ns at 6.0 "done"
$ns run
