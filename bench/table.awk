# Medians of raw.tsv (figure, unit, method, value) and the ratio sherman / btree. data=1: figure and ratio only, for the plot.
{
	key = $1 SUBSEP $3
	value[key, ++count[key]] = $4 + 0
	unit[$1] = $2
	if (!($1 in seen))
	{
		seen[$1] = 1
		order[++figures] = $1
	}
}

function median(key,    i, j, n, swap, sorted)
{
	n = count[key]
	for (i = 1; i <= n; i++)
		sorted[i] = value[key, i]
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && sorted[j] < sorted[j - 1]; j--)
		{
			swap = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = swap
		}
	return n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}

END {
	if (!data)
		printf "%-24s %12s %12s %14s  %s\n", "", "btree", "sherman", "sherman/btree", "unit"
	for (f = 1; f <= figures; f++)
	{
		name = order[f]
		a = median(name SUBSEP "btree")
		b = median(name SUBSEP "sherman")
		ratio = a > 0 ? sprintf("%.2f", b / a) : "-"
		if (data)
			printf "\"%s\"\t%s\n", name, (a > 0 ? b / a : 0)
		else
			printf "%-24s %12.3f %12.3f %14s  %s\n", name, a, b, ratio, unit[name]
	}
}
