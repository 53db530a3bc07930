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

# mutate NAME TESTS FILE PERL-SUBSTITUTIONS [NODES]: what the lists call. Each of the substitutions must find something.
mutate()
{
	local name=$1 tests=$2 file=$3 change=$4 nodes=${5:-} status=0 began=$SECONDS

	is_chosen "$name" || return 0
	if ! "$original/test/apply-mutation" "$mutated/$file" "$change"; then
		report STALE "$name: the change does not apply to $file"
	else
		judge "$tests" "$nodes" || status=$?
		case $status in
			0) report MISSED "$name" ;;
			1) report noticed "$name ($tests, $((SECONDS - began)) s: $(evidence))" ;;
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

# mutate_apply DIRECTORY LIST...: whether the changes of all lists apply to the checkout there, and no two have one name; nothing is built.
mutate_apply()
{
	local directory=$1 list twice

	shift
	twice=$(sed -n 's/^mutate \([^ ]*\) .*/\1/p' "$@" | sort | uniq -d)
	[ -z "$twice" ] || { echo "several mutations are called:" $twice; return 1; }
	mutate()
	{
		printf '%s\0%s\0%s\0' "$1" "$3" "$4"
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
