# The table of script/bench partitions, in markdown, from its lines: group, way, unit, method, round, value. Medians of btree and of sherman, the ratio
# of the two, and for each method that to the group's first way, which is one server. In brackets are the least and the greatest ratio of a round.
BEGIN { FS = "\t" }

{
	key = $1 SUBSEP $2
	value[key, $4, $5] = $6 + 0
	unit[key] = $3
	if ($5 > rounds)
		rounds = $5
	if (!(key in seen))
	{
		seen[key] = 1
		if (!($1 in ways))
			group[++groups] = $1
		way[$1, ++ways[$1]] = $2
	}
}

# Sets sorted to the rounds of a figure; where there is another one, to their ratios.
function sort_rounds(a, a_method, b, b_method,    i, j, swap)
{
	for (i = 1; i <= rounds; i++)
	{
		sorted[i] = value[a, a_method, i] / (b == "" ? 1 : value[b, b_method, i])
		for (j = i; j > 1 && sorted[j] < sorted[j - 1]; j--)
		{
			swap = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = swap
		}
	}
}

function median(key, method)
{
	sort_rounds(key, method, "", "")
	return rounds % 2 ? sorted[(rounds + 1) / 2] : (sorted[rounds / 2] + sorted[rounds / 2 + 1]) / 2
}

function ratio(a, a_method, b, b_method,    middle)
{
	middle = median(a, a_method) / median(b, b_method)
	sort_rounds(a, a_method, b, b_method)
	return sprintf("%.2f (%.2f to %.2f)", middle, sorted[1], sorted[rounds])
}

# The column of one method, where the group begins with one server.
function beside(key, base, method)
{
	return key == base || base !~ SUBSEP "one server" ? "" : ratio(key, method, base, method)
}

function number(x)
{
	return sprintf(x >= 100 ? "%.0f" : x >= 10 ? "%.1f" : "%.2f", x)
}

END {
	print "| | btree | sherman | sherman / btree | btree: beside one server | sherman: beside one server | |\n|---|--:|--:|--:|--:|--:|---|"
	for (g = 1; g <= groups; g++)
	{
		name = group[g]
		printf "| **%s** | | | | | | |\n", name
		for (w = 1; w <= ways[name]; w++)
		{
			key = name SUBSEP way[name, w]
			base = name SUBSEP way[name, 1]
			printf "| %s | %s | %s | %s | %s | %s | %s |\n", way[name, w], number(median(key, "btree")), number(median(key, "sherman")), ratio(key, "sherman", key, "btree"),
				beside(key, base, "btree"), beside(key, base, "sherman"), unit[key]
		}
	}
}
