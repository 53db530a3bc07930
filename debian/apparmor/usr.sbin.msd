# msd, the daemon of a memory node, with the files of its units msd.service and msd@.service. Others (memory on hugetlbfs, a snapshot on another disk,
# keys elsewhere) go into /etc/apparmor.d/local/usr.sbin.msd. What is not here is logged and not refused: "aa-enforce usr.sbin.msd" has it refused.
abi <abi/3.0>,

include <tunables/global>

profile msd /usr/sbin/msd flags=(complain) {
  include <abstractions/base>
  include <abstractions/consoles>
  include <abstractions/nameservice>
  include <abstractions/openssl>

  /usr/sbin/msd mr,
  /usr/lib/sherman/sherman_verbs.so mr,
  /etc/sherman/ r,
  /etc/sherman/** r,

  # The memory, its lock, and what is set aside.
  /dev/shm/ r,
  /dev/shm/sherman* rwk,
  # Sockets, snapshots, logs.
  /run/sherman/{,**} rwk,
  /var/lib/sherman/{,**} rwk,
  /var/log/sherman/{,**} rwk,
  /run/systemd/notify w,

  # Clients by their processes, and what the machine is like.
  @{PROC}/@{pids}/stat r,
  @{PROC}/@{pid}/fd/ r,
  @{PROC}/@{pid}/fd/** r,
  @{PROC}/@{pid}/mountinfo r,
  @{PROC}/sys/kernel/random/boot_id r,
  /sys/class/net/ r,
  /sys/devices/** r,
  /sys/kernel/mm/hugepages/** r,
  /sys/kernel/mm/transparent_hugepage/* r,

  # RDMA.
  /dev/infiniband/** rw,
  /etc/libibverbs.d/{,*} r,
  /sys/class/infiniband{,_verbs}/{,**} r,

  include if exists <local/usr.sbin.msd>
}
