# The table of script/bench, in markdown, from raw.tsv: group, figure, unit, method, round, value. The ratio is the one of the
# medians, sherman / btree; best and worst are those of the rounds. Where round trips were counted they have a column. data=1: figure and ratio only, for the plot.
{
	key = $1 SUBSEP $2
	value[key, $4, $5] = $6 + 0
	unit[key] = $3
	if ($4 == "round trips")
		counted = 1
	if ($5 > rounds[key])
		rounds[key] = $5
	if (!(key in seen))
	{
		seen[key] = 1
		if (!($1 in figures))
			group[++groups] = $1
		figure[$1, ++figures[$1]] = $2
	}
}

function median(key, method,    i, j, n, swap, sorted)
{
	n = rounds[key]
	for (i = 1; i <= n; i++)
		sorted[i] = value[key, method, i]
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && sorted[j] < sorted[j - 1]; j--)
		{
			swap = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = swap
		}
	return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}

# To the two digits that are shown. What takes less than nothing was lost in the noise of what it is the difference of: -1.
function ratio(a, b)
{
	return a > 0 && b >= 0 ? int(b / a * 100 + 0.5) / 100 : -1
}

function shown(r)
{
	return r < 0 ? "-" : sprintf("%.2f", r)
}

function number(x)
{
	return sprintf(x >= 100 ? "%.0f" : x >= 10 ? "%.1f" : "%.2f", x)
}

# Sets best and worst, -1 where a round has no ratio.
function find_range(key,    i, r)
{
	best = worst = ratio(value[key, "btree", 1], value[key, "sherman", 1])
	for (i = 2; i <= rounds[key]; i++)
	{
		r = ratio(value[key, "btree", i], value[key, "sherman", i])
		if (r < best)
			best = r
		if (r > worst)
			worst = r
		if (r < 0)
			best = -1
	}
	if (best < 0)
		worst = -1
}

# The column of round trips, if there is one.
function trips(key)
{
	if (!counted)
		return ""
	return ((key, "round trips", 1) in value) ? sprintf(" %.3f |", median(key, "round trips")) : " |"
}

# In the plot and in the lists: with its group's first word, but for the first group.
function full_name(key,    part, word)
{
	split(key, part, SUBSEP)
	split(part[1], word, /[ :]/)
	return part[1] == group[1] ? part[2] : tolower(word[1]) ": " part[2]
}

function show(key,    a, b, r, part)
{
	a = median(key, "btree")
	b = median(key, "sherman")
	r = ratio(a, b)
	if (data)
	{
		if (r > 0)
			printf "\"%s\"\t%s\n", full_name(key), r
		return
	}
	find_range(key)
	split(key, part, SUBSEP)
	printf "| %s | %s | %s | %s | %s | %s |%s %s |\n", part[2], number(a), number(b), (r > 1 ? "**" shown(r) "**" : shown(r)), shown(best), shown(worst), trips(key), unit[key]
	if (worst >= 0 && worst <= 1)
		ahead++
	else if (best > 1)
		behind = behind (behind ? "; " : "") full_name(key) " " shown(r)
	else
		open = open (open ? "; " : "") full_name(key) " " shown(r)
}

END {
	if (!data)
		print "| | btree | sherman | ratio | best | worst |" (counted ? " round trips |" : "") " |\n|---|--:|--:|--:|--:|--:|" (counted ? "--:|" : "") "---|"
	for (g = 1; g <= groups; g++)
	{
		if (!data)
			printf "| **%s** | | | | | |%s |\n", group[g], counted ? " |" : ""
		for (f = 1; f <= figures[group[g]]; f++)
			show(group[g] SUBSEP figure[group[g], f])
	}
	if (data)
		exit
	printf "\nsherman is ahead, or even, in each round: %d figures.\n", ahead
	printf "\nbtree is ahead in each round: %s.\n", behind ? behind : "none"
	printf "\nUndecided, with rounds on both sides or lost in noise (-): %s.\n", open ? open : "none"
}
