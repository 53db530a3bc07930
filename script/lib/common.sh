# Shared by script/demo, script/test and script/bench: packages, a private PostgreSQL, throw-away clusters.
#
# Nothing is installed into the system's PostgreSQL: its binaries find their files relative to their own place, so
# a copy of the tree (50 MB) in a temporary directory is a whole installation that the extension can be put into.
# Sourced, not run. Needs bash.

set -euo pipefail

# The major version: another one where SHERMAN_PG names it, as script/test --pg does.
PG_MAJOR=${SHERMAN_PG:-15}
PG_SYSTEM=/usr/lib/postgresql/$PG_MAJOR
TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

say()
{
	printf '%s\n' "$*"
}

die()
{
	printf '%s: %s\n' "$(basename "$0")" "$*" >&2
	exit 1
}

# Runs a command as root: directly, or through sudo.
as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		command -v sudo >/dev/null || die "needs root or sudo for: $*"
		sudo "$@"
	fi
}

# Seconds that another apt may hold its locks, as it does on a fresh machine for its first upgrades.
APT_PATIENCE=900

# What postgresql-common reads when a server is installed.
CREATECLUSTER=/etc/postgresql-common/createcluster.conf

# apt_get ARGUMENT...: apt-get as root, quietly, behind whoever holds one of its locks: not all of them it waits for by itself.
apt_get()
{
	local errors deadline=$((SECONDS + APT_PATIENCE)) said=

	errors=$(mktemp)
	until as_root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=60 "$@" >/dev/null 2>"$errors"; do
		if ! grep -qE 'Could not get lock|Unable to (lock|acquire)' "$errors" || [ $SECONDS -gt $deadline ]; then
			cat "$errors" >&2
			rm -f "$errors"
			return 1
		fi
		[ -n "$said" ] || say "another apt is at work: waiting for it"
		said=1
		sleep 2
	done
	rm -f "$errors"
}

packages_install()
{
	apt_get install -y --no-install-recommends "$@"
}

# install_server PACKAGE...: PostgreSQL's server among them, which makes no cluster of its own: the machine stays as it was. The setting that
# says so belongs to postgresql-common and its user, who have it back, whatever becomes of the installation.
install_server()
(
	packages_install postgresql-common || exit 1
	kept=$(mktemp -d)
	if [ -e "$CREATECLUSTER" ]; then as_root cp -a "$CREATECLUSTER" "$kept/"; fi
	put_back()
	{
		as_root rm -f "$CREATECLUSTER"
		if [ -e "$kept/createcluster.conf" ]; then as_root cp -a "$kept/createcluster.conf" "$CREATECLUSTER"; fi
		as_root rm -rf "$kept"
	}
	trap put_back EXIT
	printf 'create_main_cluster = false\n' | as_root tee "$CREATECLUSTER" >/dev/null
	packages_install "$@"
)

# Installs the Debian packages that are missing.
install_packages()
{
	local package missing=()

	for package in "$@"; do
		dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null | grep -q '^ii' || missing+=("$package")
	done
	[ ${#missing[@]} -eq 0 ] && return 0
	say "installing: ${missing[*]}"
	apt_get update
	if [[ " ${missing[*]} " == *" postgresql-$PG_MAJOR "* ]]; then
		install_server "${missing[@]}"
	else
		packages_install "${missing[@]}"
	fi
}

# own_packages: those of script/lib/packages, of the server's version in use.
own_packages()
{
	sed -E "s/^(postgresql.*-)15\$/\1$PG_MAJOR/" "$TOP/script/lib/packages"
}

# install_own_packages [PACKAGE...]: ours, and these beside them. A chroot has what it was made with.
install_own_packages()
{
	local packages

	[ -z "${SHERMAN_CHROOT:-}" ] || return 0
	mapfile -t packages < <(own_packages)
	install_packages "${packages[@]}" "$@"
}

# The user that servers run as: PostgreSQL refuses root.
server_user()
{
	if [ "$(id -u)" -eq 0 ]; then echo postgres; else id -un; fi
}

as_server()
{
	if [ "$(id -u)" -eq 0 ]; then
		(cd / && runuser -u postgres -- "$@")
	else
		"$@"
	fi
}

# make_workplace: sets WORK, a directory that the server's user may enter, and MEMORY, one on tmpfs for the embedded
# memory nodes; everything of this run lies in the two.
make_workplace()
{
	WORK=$(mktemp -d "${TMPDIR:-/tmp}/sherman.XXXXXX")
	MEMORY=$(mktemp -d /dev/shm/sherman.XXXXXX)
	chmod 755 "$WORK"
	[ "$(id -u)" -ne 0 ] || chown postgres "$MEMORY"
	PREFIX=$WORK/prefix
	PGBIN=$PREFIX/lib/postgresql/$PG_MAJOR/bin
}

# make_prefix: a private copy of PostgreSQL in $PREFIX.
make_prefix()
{
	[ -x $PG_SYSTEM/bin/postgres ] || die "PostgreSQL $PG_MAJOR is not installed"
	mkdir -p "$PREFIX/lib/postgresql" "$PREFIX/share/postgresql" "$PREFIX/include"
	cp -a $PG_SYSTEM "$PREFIX/lib/postgresql/"
	cp -aL /usr/share/postgresql/$PG_MAJOR "$PREFIX/share/postgresql/"
	ln -s /usr/include/postgresql "$PREFIX/include/postgresql"
}

# copy_checkout DIRECTORY: its files, without what was built among them.
copy_checkout()
{
	mkdir -p "$1"
	tar -C "$TOP" -cf - --exclude=.git --exclude='*.o' --exclude='*.d' --exclude='*.so' --exclude=./msd . | tar -xf - -C "$1"
}

# build_config: the pg_config to build with: that of the system for a copy of its server, whose headers are at another place each time, and no ccache
# knew what was compiled with them.
build_config()
{
	if cmp -s "$PG_SYSTEM/bin/pg_config" "$PGBIN/pg_config"; then echo "$PG_SYSTEM/bin/pg_config"; else echo "$PGBIN/pg_config"; fi
}

# build_extension [make arguments]: builds a copy of the checkout in $WORK/source and installs it into $PREFIX.
build_extension()
{
	copy_checkout "$WORK/source"
	make -s -C "$WORK/source" -j"$(nproc)" PG_CONFIG="$(build_config)" "$@" >"$WORK/build.log" 2>&1 ||
		{ tail -n 40 "$WORK/build.log" >&2; die "the build failed"; }
	{ make -s -C "$WORK/source" PG_CONFIG="$PGBIN/pg_config" install &&
		make -s -C "$WORK/source" "$@" install-msd prefix="$PREFIX/lib/postgresql/$PG_MAJOR"; } >"$WORK/install.log" 2>&1 ||
		{ tail -n 40 "$WORK/install.log" >&2; die "the installation failed"; }
	if [ "$(id -u)" -eq 0 ]; then
		chown -R postgres "$WORK/source"
	fi
}

# take_prefix PREFIX [make arguments]: a private copy of PostgreSQL with the extension in it; empty: makes one.
take_prefix()
{
	if [ -z "$1" ]; then
		make_prefix
		build_extension "${@:2}"
		return
	fi
	PREFIX=$1
	PGBIN=$PREFIX/lib/postgresql/$PG_MAJOR/bin
}

# cluster_create NAME [configuration lines on stdin]: a cluster in $WORK/NAME that listens on a socket there only.
cluster_create()
{
	local data=$WORK/$1

	mkdir "$data"
	[ "$(id -u)" -ne 0 ] || chown postgres "$data"
	as_server "$PGBIN/initdb" -D "$data" --no-sync -A trust -U postgres --locale=C.UTF-8 -E UTF8 \
		>"$WORK/initdb.$1.log" 2>&1 || { cat "$WORK/initdb.$1.log" >&2; die "initdb failed"; }
	cat >>"$data/postgresql.conf" <<-CONFIGURATION
		listen_addresses = ''
		unix_socket_directories = '$data'
		shared_preload_libraries = 'sherman'
		sherman.embedded_directory = '$MEMORY'
		fsync = off
		logging_collector = off
		log_line_prefix = '%m [%p] '
	CONFIGURATION
	cat >>"$data/postgresql.conf"
}

cluster_start()
{
	as_server "$PGBIN/pg_ctl" -D "$WORK/$1" -l "$WORK/$1/log" -w -t 60 start >/dev/null ||
		{ tail -n 30 "$WORK/$1/log" >&2; die "the server did not start"; }
	export PGHOST=$WORK/$1 PGUSER=postgres PGDATABASE=postgres
}

# cluster_stop NAME [mode]
cluster_stop()
{
	as_server "$PGBIN/pg_ctl" -D "$WORK/$1" -m "${2:-fast}" -w -t 60 stop >/dev/null
}

# regress NAME: pg_regress and the isolation tests in a cluster of this name, with the settings on stdin.
regress()
{
	# VACUUM passes over a page that is being written: nothing is in the background while tests expect it to clean one.
	{ cat; printf 'checkpoint_timeout = 1h\nbgwriter_lru_maxpages = 0\n'; } | cluster_create "$1"
	cluster_start "$1"
	as_server env PATH="$PGBIN:$PATH" PGHOST="$PGHOST" PGUSER=postgres make -s -C "$WORK/source" PG_CONFIG="$PGBIN/pg_config" \
		installcheck TAP_TESTS= PGUSER=postgres || { cat "$WORK"/source/regression.diffs "$WORK"/source/output_iso/regression.diffs 2>/dev/null | head -n 200; return 1; }
	cluster_stop "$1"
}

# tap_tests SOURCE [NAME=VALUE ...] TEST...: TAP tests of a copy of the checkout, with the installation in $PREFIX, and these in their environment.
tap_tests()
{
	local source=$1 environment=()

	shift
	while [[ $1 == *=* ]]; do
		environment+=("$1")
		shift
	done
	as_server env PATH="$PGBIN:$PATH" SHERMAN_TEST_MEMORY="$MEMORY" "${environment[@]}" \
		make -s -C "$source" PG_CONFIG="$PGBIN/pg_config" installcheck REGRESS= ISOLATION= PROVE_FLAGS='-v --timer' PROVE_TESTS="$*"
}

# keys_create: one tenant's new key in $MEMORY/keys.
keys_create()
{
	printf 'main %s\n' "$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')" | as_server tee "$MEMORY/keys" >/dev/null
	as_server chmod 600 "$MEMORY/keys"
}

# node_start NAME HOST:PORT FLAG...: a memory node across the network; sets PORT (which 0 lets the system choose) and adds to
# NODE_PIDS. Flags say who is let in: --keys "$MEMORY/keys".
node_start()
{
	local name=$1 listen=$2 log=$MEMORY/$1.log i

	shift 2
	as_server touch "$log"
	as_server "$PGBIN/msd" --memory "$MEMORY/$name" --socket "$MEMORY/$name.socket" --listen "$listen" \
		--log "$log" "$@" &
	for i in $(seq 600); do
		grep -q ': ready$' "$log" && break
		sleep 0.1
	done
	PORT=$(sed -nE 's/.*listening at .*, port ([0-9]+)(,.*)?$/\1/p' "$log")
	NODE_PIDS+=("$(sed -nE 's/.*\[([0-9]+)\] info: ready$/\1/p' "$log")")
	[ -n "$PORT" ] || { cat "$log" >&2; die "msd does not serve"; }
}

run_psql()
{
	"$PGBIN/psql" -X -q -v ON_ERROR_STOP=1 "$@"
}

# Stops every cluster of this run and removes its files and its memory. For trap ... EXIT.
clean_up()
{
	local pidfile

	[ -n "${WORK:-}" ] || return 0
	for pidfile in "$WORK"/*/postmaster.pid; do
		[ -e "$pidfile" ] || continue
		as_server "$PGBIN/pg_ctl" -D "$(dirname "$pidfile")" -m immediate -w -t 30 stop >/dev/null 2>&1 || true
	done
	rm -rf "$WORK" "$MEMORY"
	WORK=
}
