# The table of script/bench paper: bench/paper.figures beside the runs' figures. Variables: runs (file of lines: name and fields); breakdown:
# Sherman's steps instead, for the plot.
BEGIN {
	FS = OFS = "\t"
	split("throughput p50 p90 p99 trips read written retries", names, " ")
	while ((getline line < runs) > 0) {
		count = split(line, part, "\t")
		for (i = 1; i in names; i++)
			value[part[1], names[i]] = part[i + 1]
		known[part[1]] = 1
	}
	# The paper's steps, from its baseline on, multiplied.
	if (breakdown) {
		split("fgplus combine chip hierarchy sherman", steps, " ")
		split("FG+,+ combine,+ on-chip,+ hierarchical,+ versions", labels, ",")
		split("0.34 3.37 3.06 2.22 1.03", factors, " ")
		paper = 1
		for (i = 1; i in steps; i++) {
			paper *= factors[i]
			print labels[i], sprintf("%.2f", paper), value[steps[i] ".wi.skew", "throughput"]
		}
		exit
	}
	printf "%-46s %10s %10s %-6s %s\n", "", "paper", "model", "", "ratio"
}
/^#/ || !($6 in known) || ($7 != "" && !($7 in known)) { next }
{
	ours = value[$6, $5]
	if ($7 != "")
		ours = value[$7, $5] == 0 ? 0 : ours / value[$7, $5]
	if ($1 != section)
		print $1
	section = $1
	ratio = ours / $3
	printf("  %-44s %10.4g %10.4g %-6s %5.2f%s\n", $2, $3, ours, $4, ratio, (ratio < 0.7 || ratio > 1.3) ? "  *" : "")
}
