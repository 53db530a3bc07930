# What clients share: sourced by run, in front of each.

# sql STATEMENT...: in the client's database; rows without a frame.
sql()
{
	local arguments=() statement

	for statement in "$@"; do arguments+=(-c "$statement"); done
	psql -XAtq -v ON_ERROR_STOP=1 "${arguments[@]}"
}

# is WHAT GOT EXPECTED
is()
{
	[ "$2" = "$3" ] || { printf '%s:\n  got      %s\n  expected %s\n' "$1" "$2" "$3"; return 1; }
}

# fails_with EXPRESSION COMMAND...: it fails, and what it says matches.
fails_with()
{
	local expression=$1 said

	shift
	if said=$("$@" 2>&1); then echo "does not fail: $*: $said"; return 1; fi
	grep -qE "$expression" <<<"$said" || { echo "fails, and does not say '$expression': $*: $said"; return 1; }
}

# wait_for COMMAND...: until it succeeds, half a minute at most.
wait_for()
{
	local i

	for i in $(seq 300); do
		if "$@" >/dev/null 2>&1; then return 0; fi
		sleep 0.1
	done
	echo "in vain: $*"
	return 1
}

# verify N [DATABASE]: every sherman index is ok, whole, and gives the answers of a sequential scan; there are N of them, so that a client whose
# indexes have silently become btree's is found. "N+": or more.
verify()
{
	local found

	found=$(PGDATABASE=${2:-$PGDATABASE} psql -XAtq -v ON_ERROR_STOP=1 -f "$HERE/verify.sql")
	[ "$found" -ge "${1%+}" ] && { [ "$1" != "${1%+}" ] || [ "$found" -eq "$1" ]; } || { echo "$found indexes, and expected $1"; return 1; }
	echo "verified: $found indexes"
}
