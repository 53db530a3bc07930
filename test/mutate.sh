# One safeguard at a time is switched off, and a test must fail: what test/mutations and script/test long mutations-server share. Sourced.
#
# Whoever sources it sets
#	chosen		names of the mutations that were asked for, each between blanks; none: all
#	original	a copy of the checkout, as far as it is changed and has test/mutants
#	mutated		another, which is changed and built
# and defines
#	judge TESTS [NODES]	builds and runs them; 1: a test failed, 2: it does not compile
#	evidence	what the test said first
#	complaint	what the compiler said
passed=0
failed=0

# report VERDICT TEXT: a line; "noticed" is what is wanted.
report()
{
	if [ "$1" = noticed ]; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
	printf '%-7s %s\n' "$1" "$2"
}

is_chosen()
{
	[ -z "${chosen// /}" ] || [[ "$chosen" == *" $1 "* ]]
}

# mutation_nodes ARGUMENTS: what nodes a mutation with these arguments is tried with; nothing: the usual ones.
mutation_nodes()
{
	[ $(($# % 2)) -eq 0 ] || echo "${!#}"
}

# mutate NAME TESTS PLACES CHANGE [PLACES CHANGE]... [NODES]: what the lists call (test/apply-mutation).
mutate()
{
	local name=$1 tests=$2 files file status=0 began=$SECONDS

	is_chosen "$name" || return 0
	if ! files=$("$original/test/apply-mutation" "$mutated" "$@" 2>&1); then
		report STALE "$name: $files"
		return
	fi
	judge "$tests" "$(mutation_nodes "$@")" || status=$?
	case $status in
		0) report MISSED "$name" ;;
		1) report noticed "$name ($tests, $((SECONDS - began)) s: $(evidence))" ;;
		*) report BROKEN "$name: does not compile: $(complaint)" ;;
	esac
	# With a new time, so that it is compiled again.
	for file in $files; do cp "$original/$file" "$mutated/$file"; done
}

# mutate_lists LIST...: what is chosen of the lists; a chosen one that is in none is a failure.
mutate_lists()
{
	local list name

	for list in "$@"; do
		. "$list"
	done
	for name in $chosen; do
		grep -q "^mutate $name " "$@" || report MISSED "$name: there is no such mutation"
	done
}

# mutate_apply DIRECTORY LIST...: whether the changes of all lists apply to the checkout there, and no two have one name; nothing is built.
mutate_apply()
{
	local directory=$1 list twice

	shift
	twice=$(sed -n 's/^mutate \([^ ]*\) .*/\1/p' "$@" | sort | uniq -d)
	[ -z "$twice" ] || { echo "several mutations are called:" $twice; return 1; }
	mutate()
	{
		printf '%s\0' "$@" ''
	}
	# A list with a wrong line has no more than what stands in front of that.
	(set -o pipefail; for list in "$@"; do . "$list" || exit 1; done | "$directory/test/apply-mutation" --check "$directory")
}

# Ends the run.
mutate_end()
{
	printf '%d passed, %d failed\n' $passed $failed
	[ $failed -eq 0 ]
}
