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
config=$(realpath "$(dirname "$0")/kernel.config")
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
# Programs call the kernel itself: its vDSO is not what they expect (it has no getcpu), and no faster.
sed -i 's/^#define ARCH_DLINFO.*/#define ARCH_DLINFO/' arch/x86/um/asm/elf.h
grep -q '^#define ARCH_DLINFO$' arch/x86/um/asm/elf.h
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
