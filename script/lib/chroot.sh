# For script/test --pg: a Debian with another PostgreSQL, in a directory. Sourced behind common.sh, not run.
#
# Packages come from the archive that the machine has its own from, by the same proxies and keys. What runs in a chroot runs in namespaces of its
# own: the kernel takes back its mounts and ends its processes when the first of them ends, however that comes about.

# Where chroots are kept: 1 GB each.
CHROOTS=${SHERMAN_CHROOTS:-/var/tmp/sherman-chroots}

# suite_of MAJOR: sets SUITE, the Debian suite that has this server, or, where that is no whole one, SUITE and the one BEHIND it that has it.
suite_of()
{
	BEHIND=
	case $1 in
		17) SUITE=trixie ;;
		18) SUITE=forky ;;
		19) SUITE=sid BEHIND=experimental ;;
		*) die "no suite of Debian is known to have PostgreSQL $1" ;;
	esac
}

# in_chroot ROOT COMMAND...: as root, with /proc, /dev, a /dev/shm of its own, the checkout at /srv (read only), the directory BESIDE, if that is set,
# at /mnt, and a /tmp that is gone afterwards.
in_chroot()
{
	local root=$1 scratch status=0 sudo=()

	shift
	# Not by as_root(): a function in the background would be a shell of its own, and the signal is for unshare(1), or for sudo, which hands it on.
	[ "$(id -u)" -eq 0 ] || sudo=(sudo)
	scratch=$(mktemp -d "$CHROOTS/scratch.XXXXXX")
	chmod 1777 "$scratch"
	# The shell stays, as the first process, to wait for those that lose their parent. unshare(1) blocks SIGINT and SIGTERM, but no SIGHUP.
	"${sudo[@]}" unshare --mount --pid --fork --kill-child --propagation private bash -c '
		# The checkout before /tmp, where it may lie.
		mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount -t tmpfs tmpfs "$1/dev/shm" &&
			mount --bind "$3" "$1/srv" && mount -o remount,bind,ro "$1/srv" && mount --bind "$2" "$1/tmp" &&
			{ [ -z "$4" ] || mount --bind "$4" "$1/mnt"; } || exit 1
		chroot "$1" "${@:5}"
		exit $?' in_chroot "$root" "$scratch" "$TOP" "${BESIDE:-}" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root TMPDIR=/tmp \
		DEBIAN_FRONTEND=noninteractive "$@" <&0 &
	trap "as_root kill -HUP $! 2>/dev/null; wait $!; as_root rm -rf '$scratch'; exit 143" HUP INT TERM
	wait $! || status=$?
	trap - HUP INT TERM
	as_root rm -rf "$scratch"
	return $status
}

# machine_archive: sets ARCHIVE, the archive of Debian's that the machine uses, KEYRING, where its sources name one, and the proxies for debootstrap.
# False: its apt knows of none.
machine_archive()
{
	local entry targets=('Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main')

	ARCHIVE=$(apt-get indextargets --format '$(REPO_URI)' "${targets[@]}" | sed -n 1p) && [ -n "$ARCHIVE" ] || return 1
	entry=$(apt-get indextargets --format '$(SOURCESENTRY)' "${targets[@]}" | sed -n 1p) || return 1
	KEYRING=$(sed -nE 's/.*signed-by[:=] *(\/[^] ]+).*/\1/Ip' "${entry%:*}" | sed -n 1p) || return 1
	eval "$(apt-config shell http_proxy Acquire::http::Proxy https_proxy Acquire::https::Proxy)" || return 1
	[ -z "${http_proxy:-}" ] || export http_proxy
	[ -z "${https_proxy:-}" ] || export https_proxy
}

# archive_has SUITE: whether the machine's archive can be reached, and has this suite.
archive_has()
{
	local directory status=0

	directory=$(mktemp -d) || return 1
	/usr/lib/apt/apt-helper -qq -o Acquire::Retries=1 -o Acquire::http::Timeout=20 download-file "${ARCHIVE%/}/dists/$1/InRelease" \
		"$directory/InRelease" >/dev/null 2>&1 || status=1
	rm -rf "$directory"
	return $status
}

# chroot_packages MAJOR: what its chroot has: our packages, without those that no server's version matters to, and the server's headers without what its bitcode needs beside our clang.
chroot_packages()
{
	PG_MAJOR=$1 own_packages | grep -vE '^(clang-format|libclang-rt-dev|mandoc|spin|libcmocka-dev|postgresql-server-dev-.*)$'
	echo libicu-dev
}

# Runs in a new chroot: installs the server, its headers and what tests need.
chroot_furnish()
{
	local headers=postgresql-server-dev-$1

	shift
	apt-get -qq update
	# shellcheck disable=SC2046
	apt-get -qq install -y --no-install-recommends "$@" \
		$(apt-cache depends "$headers" | sed -nE 's/^ +Depends: ([a-z0-9].*)/\1/p' | grep -vE '^(clang|llvm)')
	cd /tmp
	apt-get -qq download "$headers"
	dpkg --force-depends -i "$headers"_*.deb
	apt-get clean
}

# as_root_write FILE: what stands on stdin.
as_root_write()
{
	as_root tee "$1" >/dev/null
}

# chroot_settings ROOT: the machine's ways to its archive, no flushes, no services, no cluster.
chroot_settings()
{
	apt-config dump | { grep -iE '^Acquire::(https?|Retries|Check-[^ ]*|Max-[^ ]*)[: ]' || true; } | as_root_write "$1/etc/apt/apt.conf.d/50machine" &&
		printf 'force-unsafe-io\n' | as_root_write "$1/etc/dpkg/dpkg.cfg.d/unsafe-io" &&
		printf '#!/bin/sh\nexit 101\n' | as_root_write "$1/usr/sbin/policy-rc.d" &&
		as_root chmod 755 "$1/usr/sbin/policy-rc.d" &&
		as_root mkdir -p "$1$(dirname "$CREATECLUSTER")" &&
		printf 'create_main_cluster = false\n' | as_root_write "$1$CREATECLUSTER"
}

# chroot_bootstrap ROOT: the least of SUITE, by ARCHIVE, with the machine's settings; PostgreSQL comes from BEHIND where that has a newer one.
chroot_bootstrap()
{
	local script=/usr/share/debootstrap/scripts/$SUITE

	install_packages debootstrap || return 1
	# A suite that is newer than this debootstrap is made as the newest are.
	[ -e "$script" ] || script=/usr/share/debootstrap/scripts/sid
	as_root debootstrap --variant=minbase ${KEYRING:+--keyring="$KEYRING"} "$SUITE" "$1" "$ARCHIVE" "$script" && chroot_settings "$1" || return 1
	[ -n "${BEHIND:-}" ] || return 0
	printf 'deb %s %s main\n' "$ARCHIVE" "$BEHIND" | as_root_write "$1/etc/apt/sources.list.d/behind.list" &&
		printf 'Package: postgresql* libpq*\nPin: release a=%s\nPin-Priority: 500\n' "$BEHIND" | as_root_write "$1/etc/apt/preferences.d/behind"
}

# chroot_make MAJOR ROOT: of SUITE, by ARCHIVE; makes it in a directory beside, which is gone if this fails or is ended, so that half of one is never
# used. What is called in a condition goes on behind an error: each command says what comes of its own.
chroot_make()
(
	major=$1 root=$2

	trap 'as_root rm -rf "$root.part"' EXIT
	as_root rm -rf "$root" "$root.part" && chroot_bootstrap "$root.part" || exit 1
	# shellcheck disable=SC2046
	in_chroot "$root.part" bash -euc "$(declare -f chroot_furnish); chroot_furnish \"\$@\"" furnish "$major" $(chroot_packages "$major") || exit 1
	chroot_packages "$major" | as_root_write "$root.part/etc/sherman-packages" && as_root mv "$root.part" "$root"
)

# has_chroot MAJOR: whether CHROOT has what is in script/lib/packages by now.
has_chroot()
{
	chroot_packages "$1" | cmp -s - "$CHROOT/etc/sherman-packages"
}

# chroot_for MAJOR: sets CHROOT, one that has this server and what is in script/lib/packages by now; nobody makes it anew as long as this process
# lives. False: the machine's archive cannot be reached, or has not the suite, or its packages cannot be installed now; WHY_NOT says so.
chroot_for()
{
	suite_of "$1"
	CHROOT=$CHROOTS/postgresql-$1
	mkdir -p "$CHROOTS" || die "$CHROOTS cannot be made"
	# One at a time looks for it and makes it, when nobody uses the one that is to go.
	exec 6>"$CHROOT.making" 7>"$CHROOT.lock"
	flock 6
	if ! has_chroot "$1"; then
		flock 7
		if ! machine_archive || ! archive_has "$SUITE"; then
			WHY_NOT="no chroot with PostgreSQL $1: Debian $SUITE cannot be had from the archive that this machine's apt is set up with"
			return 1
		fi
		say "making a chroot of Debian $SUITE in $CHROOT: $CHROOT.log"
		if ! chroot_make "$1" "$CHROOT" >"$CHROOT.log" 2>&1; then
			tail -n 20 "$CHROOT.log" >&2
			WHY_NOT="no chroot with PostgreSQL $1 could be made of Debian $SUITE, which changes from day to day: $CHROOT.log says why"
			return 1
		fi
	fi
	flock -s 7
	exec 6>&-
}
