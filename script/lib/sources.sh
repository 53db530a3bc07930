# Shared by script/test long conformance and script/lib/assert-server: PostgreSQL's source, from the Debian source package, fetched without
# changing the system. Sourced behind lib.sh, not run.

# Sets APT: options that give apt-get lists of its own in a directory, and the sources of the archives that the machine has its packages from: as
# apt was told of them, in either form of its files, with all that is said there of keys and ways.
private_apt()
{
	local list parts file

	eval "$(apt-config shell list Dir::Etc::sourcelist/f parts Dir::Etc::sourceparts/d)"
	mkdir -p "$1/lists/partial" "$1/archives/partial" "$1/sources.list.d"
	: >"$1/sources.list"
	for file in "$list" "${parts%/}"/*.list "${parts%/}"/*.sources; do
		[ -r "$file" ] || continue
		sed -E 's/^deb(-src)?([[:space:]])/deb-src\2/; s/^Types:.*/Types: deb-src/I' "$file" >"$1/sources.list.d/of-${file##*/}"
	done
	APT=(-qq -o "Dir::Etc::sourcelist=$1/sources.list" -o "Dir::Etc::sourceparts=$1/sources.list.d" -o "Dir::State::lists=$1/lists"
		-o "Dir::Cache::archives=$1/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache=
		-o Acquire::http::Timeout=20 -o Acquire::Retries=1 -o APT::Sandbox::User=root)
}

# The versions of the source package that can be asked for: the installed one first, then the newest first.
source_versions()
{
	dpkg-query -W -f '${source:Version}\n' postgresql-$PG_MAJOR 2>/dev/null || true
	apt-cache "${APT[@]}" showsrc postgresql-$PG_MAJOR 2>/dev/null | sed -n 's/^Version: //p' | sort -rV
}

# fetch_archive DIRECTORY: sets ARCHIVE, upstream's archive of PostgreSQL's source as Debian has it, brought into the directory.
# False: it is not to be had; WHY_NOT says why.
fetch_archive()
{
	local version

	mkdir -p "$1"
	private_apt "$1"
	# An archive of others need not have sources: what counts is whether one has ours.
	timeout 120 apt-get "${APT[@]}" update >"$1/apt.log" 2>&1 || true
	for version in $(source_versions | awk '!seen[$0]++'); do
		(cd "$1" && timeout 300 apt-get "${APT[@]}" source --download-only "postgresql-$PG_MAJOR=$version") \
			>>"$1/apt.log" 2>&1 && break
	done
	ARCHIVE=$(ls "$1"/postgresql-${PG_MAJOR}_*.orig.tar.* 2>/dev/null | grep -v '\.asc$' | head -n 1)
	WHY_NOT="no source package of PostgreSQL $PG_MAJOR can be fetched: $(tail -n 1 "$1/apt.log")"
	[ -n "$ARCHIVE" ]
}
