# How fast this machine simulates: best and median of each load at each number of compute servers, 22 clients each.
# Reads lines of load, compute servers and millions of operations a second.
BEGIN { FS = "\t"; split("1 2 4 8", columns, " ") }

# Each case's values are kept in order.
{
	if (!($1 in seen))
	{
		seen[$1] = 1
		loads[++count] = $1
	}
	for (i = ++runs[$1, $2]; i > 1 && value[$1, $2, i - 1] > $3; i--)
		value[$1, $2, i] = value[$1, $2, i - 1]
	value[$1, $2, i] = $3 + 0
}

END {
	printf "%-20s", "M/s: best (median)"
	for (i = 1; i in columns; i++)
		printf "  %14s", columns[i] " x 22"
	print ""
	for (l = 1; l <= count; l++)
	{
		printf "%-20s", loads[l]
		for (i = 1; i in columns; i++)
		{
			n = runs[loads[l], columns[i]]
			printf "  %14s", sprintf("%.2f (%.2f)", value[loads[l], columns[i], n], value[loads[l], columns[i], int((n + 1) / 2)])
		}
		print ""
	}
}
