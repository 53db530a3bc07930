# One safeguard at a time is switched off, and a test must fail: what test/mutations and script/test-mutations-server share. Sourced.
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

# mutate NAME TESTS FILE PERL-SUBSTITUTION [NODES]: what the lists call.
mutate()
{
	local name=$1 tests=$2 file=$3 change=$4 nodes=${5:-} status=0

	is_chosen "$name" || return 0
	perl -0pi -e "$change" "$mutated/$file"
	if cmp -s "$original/$file" "$mutated/$file"; then
		report STALE "$name: the change does not apply to $file"
	else
		judge "$tests" "$nodes" || status=$?
		case $status in
			0) report MISSED "$name" ;;
			1) report noticed "$name ($(evidence))" ;;
			*) report BROKEN "$name: does not compile: $(complaint)" ;;
		esac
	fi
	# With a new time, so that it is compiled again.
	cp "$original/$file" "$mutated/$file"
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

# Ends the run.
mutate_end()
{
	printf '%d passed, %d failed\n' $passed $failed
	[ $failed -eq 0 ]
}
