#!/bin/bash
# The first process of a user-mode kernel: see run.sh.
job=$(dirname "$0")
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
# Namespaces have names there; those of the machine stay its own.
mount -t tmpfs run /run
ip link set lo up
bash "$job/command" >"$job/out" 2>"$job/err"
echo $? >"$job/code"
sync
echo o >/proc/sysrq-trigger
sleep 10
