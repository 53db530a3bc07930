# The ends of the curves of script/bench paper, with what holds each of them up.  Input: files of lines: workload,
# value, and the fields of a run (print_line() of paper.c).
# A resource of a card that is busy nine tenths of the time, or has been asked for more, is the bottleneck.  Where
# none is, and some operations take ten times as long as most, they wait for locks.  Else it is the clients, who wait
# for round trips.
BEGIN {
	FS = "\t"
	titles["servers.tsv"] = "compute servers, 8 memory nodes"
	titles["nodes.tsv"] = "memory nodes, 8 compute servers"
	titles["wide.tsv"] = "memory nodes, 64 compute servers"
	titles["entries.tsv"] = "entries, 8 memory nodes, 8 compute servers"
}
FNR == 1 {
	show_last()
	delete last
	printf "%s\n%-24s %8s %9s %9s %9s  %s\n", titles[FILENAME], "", "M/s", "p50 us", "p99 us", "p99.9 us", "bottleneck"
	first = $2
}
{
	if ($2 == first)
		print line()
	else
		last[$1] = line()
}
END { show_last() }

function line()
{
	return sprintf("  %-6s %15d %8.2f %9.2f %9.2f %9.1f  %s", $1, $2, $3, $4, $6, $15, bottleneck())
}

function bottleneck()
{
	if ($13 >= 0.9)
		return $12 " is busy all the time"
	if ($6 > 10 * $4 || $15 > 10 * $4)
		return sprintf("locks: %.3f swaps lost, %s %.0f %% busy", $10, $12, 100 * $13)
	return sprintf("round trips; %s %.0f %% busy", $12, 100 * $13)
}

function show_last(    i, order)
{
	split("read mixed insert", order, " ")
	for (i = 1; i <= 3; i++)
		if (order[i] in last)
			print last[order[i]]
}
