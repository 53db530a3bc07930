# One safeguard at a time is switched off, and a test must fail: what test/mutations and script/test long mutations-server share. Sourced.
#
# Whoever sources it sets
#	chosen		names of the mutations that were asked for, each between blanks; none: all
#	original	a copy of the checkout, as far as it is changed and has test/mutants
#	mutated		another, which is changed and built
# and defines
#	is_ours TESTS	whether a mutation that these must notice is one that it tries
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

# is_chosen NAME TESTS
is_chosen()
{
	is_ours "$2" && { [ -z "${chosen// /}" ] || [[ "$chosen" == *" $1 "* ]]; }
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

	is_chosen "$name" "$tests" || return 0
	tried+=" $name "
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

# mutate_chosen: what is chosen, of all lists; a chosen one that is in none is a failure.
mutate_chosen()
{
	local list name tried=""

	for list in "$original"/test/mutants/{,*/}*.sh; do
		. "$list"
	done
	for name in $chosen; do
		[[ "$tried" == *" $name "* ]] || report MISSED "$name: there is no such mutation"
	done
}

# Ends the run.
mutate_end()
{
	printf '%d passed, %d failed\n' $passed $failed
	[ $failed -eq 0 ]
}
