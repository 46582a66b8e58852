#!/usr/bin/env bash
# Builds a user-mode Linux whose time is virtual: it passes only while nobody has anything to do, so
# that what runs in it is never late, however slow or busy the machine is. `run.sh` runs a command in
# it.
#
#   bench/virtual/build.sh SOURCE.tar.xz KERNEL
#
# SOURCE is a kernel's source, 6.15 or newer (the lab's plain-tuned sets tcp_rto_max_ms), as
# distributions pack it (Debian: /usr/src/linux-source-*.tar.xz of the package linux-source-*) or
# kernel.org does. Needs make, gcc, flex, bison, bc; takes about 8 minutes on two cores.
set -euo pipefail
usage="usage: bench/virtual/build.sh SOURCE.tar.xz KERNEL"
source=$(realpath "${1:?$usage}")
kernel=$(realpath "${2:?$usage}")
here=$(dirname "$(realpath "$0")")
config=$here/kernel.config
for need in make gcc flex bison bc xz; do
  command -v "$need" >/dev/null || { echo "build: $need is missing: apt-get install -y $need" >&2; exit 3; }
done
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
tar -xf "$source" -C "$tree" --strip-components=1
cd "$tree"
# Ticks as most distributions have them (there 100, and no choice).
sed -i '/^config HZ$/,/default/s/default 100/default 250/' arch/um/Kconfig
grep -A2 '^config HZ$' arch/um/Kconfig | grep -q 'default 250'
# Programs read the clock without calling the kernel: that was more than half of their calls, and two
# fifths of the time that a run with outages took.
vdso=arch/x86/um/vdso
sed -i 's/^int __vdso_clock_gettime(/static int call_clock_gettime(/' $vdso/um_vdso.c
sed -i '/^\t\t__vdso_time;/a\ \t\t__vdso_getcpu;' $vdso/vdso.lds.S
sed -i 's/^static struct page \*um_vdso;/struct page *um_vdso;/' $vdso/vma.c
sed -i 's/^\ttime_travel_time = ns;/&\n\tshow_clock();/
  s/^static void time_travel_set_time(/static void show_clock(void);\n&/' arch/um/kernel/time.c
grep -q '^static int call_clock_gettime(' $vdso/um_vdso.c
grep -q '__vdso_getcpu;' $vdso/vdso.lds.S
grep -q '^struct page \*um_vdso;' $vdso/vma.c
[ "$(grep -c 'show_clock()\|show_clock(void)' arch/um/kernel/time.c)" = 2 ]
# So it is every call that takes a moment, lest somebody who waits by asking again and again stops time.
sed -i '/PT_REGS_SET_SYSCALL_RETURN(regs, ret);/a\
\t\tif (time_travel_mode == TT_MODE_INFCPU) um_ndelay(256);' arch/um/kernel/skas/syscall.c
grep -q 'um_ndelay(256)' arch/um/kernel/skas/syscall.c
cat "$here/clock-vdso.c" >>$vdso/um_vdso.c
cat "$here/clock-kernel.c" >>arch/um/kernel/time.c
make ARCH=um defconfig >/dev/null
./scripts/kconfig/merge_config.sh -m .config "$config" >/dev/null
make ARCH=um olddefconfig >/dev/null
# What a kernel no longer knows must not go unseen.
grep '=y$' "$config" | while read -r wanted; do
  grep -qx "$wanted" .config || { echo "build: this kernel cannot have $wanted" >&2; exit 1; }
done
make ARCH=um -j"$(nproc)" linux >build.log 2>&1 || { tail -20 build.log >&2; exit 1; }
mv linux "$kernel"
"$kernel" --version
