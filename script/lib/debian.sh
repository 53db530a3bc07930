# For suites that build Debian's packages, and try them in chroots of their own. Sourced behind common.sh and chroot.sh, not run.

# What a chroot for building has.
BUILD_PACKAGES="build-essential debhelper dh-apparmor postgresql-server-dev-all libibverbs-dev libicu-dev libmicrohttpd-dev libssl-dev libxxhash-dev lintian apparmor procps"

passed=0 failed=0 skipped=0
logs=$(mktemp -d)
machine=$TOP/script/lib/machine
today=

# furnish ROOT PACKAGE...: installs those that are missing.
furnish()
{
	in_chroot "$1" bash -euc 'dpkg-query -W "$@" >/dev/null 2>&1 || { apt-get -qq update; apt-get -qq install -y --no-install-recommends "$@"; apt-get clean; }' \
		furnish "${@:2}"
}

# suite_base: sets BASE, the least of SUITE, where nothing was installed into. It is there as a whole or not at all.
suite_base()
{
	BASE=$CHROOTS/base-$SUITE
	(
		flock 6
		[ ! -e "$BASE" ] || exit 0
		machine_archive && archive_has "$SUITE" || exit 1
		as_root rm -rf "$BASE.part"
		chroot_bootstrap "$BASE.part" && as_root mv "$BASE.part" "$BASE" || { as_root rm -rf "$BASE.part"; exit 1; }
	) 6>"$BASE.lock"
}

# make_chroot ROOT PACKAGE...: of SUITE, with these. It is there as a whole or not at all.
make_chroot()
(
	root=$1
	shift
	if [ -e "$root" ]; then
		furnish "$root" "$@"
		exit
	fi
	trap 'as_root rm -rf "$root.part"' EXIT
	suite_base && as_root rm -rf "$root.part" && as_root cp -a "$BASE" "$root.part" && furnish "$root.part" "$@" && as_root mv "$root.part" "$root"
)

# chroot_with NAME PACKAGE...: sets root, the chroot NAME-SUITE with these packages; nobody else uses it until this process asks for another one, or
# ends. False: it cannot be had, which is said, and counted.
chroot_with()
{
	root=$CHROOTS/$1-$SUITE
	shift
	mkdir -p "$CHROOTS"
	exec 5>"$root.lock"
	flock 5
	if ! make_chroot "$root" "$@" >"$logs/chroot" 2>&1; then
		say "skipped: no chroot of Debian $SUITE could be made from the archive that this machine's apt is set up with"
		tail -n 5 "$logs/chroot"
		skipped=$((skipped + 1))
		return 1
	fi
}

# Runs where packages are built: the packages, in /var/packages; neither AppArmor's parser, which asks no kernel, nor lintian has anything to say.
build()
{
	local said

	copy_checkout /tmp/build
	cd /tmp/build
	apparmor_parser --skip-kernel-load --skip-cache debian/apparmor/*
	pg_buildext updatecontrol
	dpkg-buildpackage -us -uc -b "-j$(nproc)"
	rm -rf /var/packages
	mkdir /var/packages
	cp /tmp/*.deb /var/packages
	rm -f /var/packages/*-dbgsym_*
	said=$(lintian --allow-root --suppress-tags bogus-mail-host /tmp/*.changes)
	[ -z "$said" ] || { echo "$said"; return 1; }
}

# build_packages: of this checkout, in SUITE's chroot, which root is set to, and in $logs/packages. False: it failed, or no chroot can be had.
build_packages()
{
	# shellcheck disable=SC2086
	chroot_with packages $BUILD_PACKAGES || return 1
	case_of "$SUITE-build" in_chroot "$root" bash -c "set -euo pipefail; TOP=/srv; $(declare -f copy_checkout build); build" || return 1
	cp -a "$root/var/packages" "$logs/"
}

# machine_wanted: says 'skipped' and ends where this host lets us start no machine (script/lib/machine). What machine_from() makes is gone when this
# process ends.
machine_wanted()
{
	trap '[ -z "$today" ] || { [ ! -e "$today.process" ] || "$machine" cut "$today"; rm -rf "$today" "$today".*; }; rm -rf "$logs"' EXIT
	"$machine" can && return
	say "skipped: a machine in a directory needs root, and cgroup2"
	skipped=1
	closing
	exit 0
}

# machine_from NAME: sets today, a copy of the chroot root for a machine, without what keeps a chroot from starting services.
machine_from()
{
	today=$(mktemp -d "$CHROOTS/$1.XXXXXX")
	cp -a "$root/." "$today/"
	rm -f "$today/usr/sbin/policy-rc.d"
}

# case_of NAME COMMAND...
case_of()
{
	local name=$1 began=$SECONDS

	shift
	if "$@" >"$logs/$name" 2>&1 </dev/null; then
		passed=$((passed + 1))
		say "ok      $name, $((SECONDS - began)) s"
	else
		failed=$((failed + 1))
		say "FAILED  $name, $((SECONDS - began)) s; the end of its log:"
		tail -n 30 "$logs/$name" | cut -c 1-300 | sed 's/^/    /'
		return 1
	fi
}

# closing: the last line; fails where something has.
closing()
{
	say "$passed passed, $failed failed, $skipped skipped"
	[ $failed -eq 0 ]
}
