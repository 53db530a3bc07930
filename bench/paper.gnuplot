# The figures of script/bench paper. Variables: results (directory with the .tsv files), pictures (where the .svg files go).
set terminal svg size 640,360 font "sans,11" background "white"
set datafile separator "\t"
set grid ytics lc rgb "#dddddd"
set style fill solid 0.8 border -1

set output pictures."/paper-breakdown.svg"
set title "Write-intensive, Zipf 0.99, 8 x 22 clients: paper's figures and the model's"
set xtics font "sans,9"
set style data histogram
set style histogram clustered gap 1
set boxwidth 0.9
set ylabel "million operations per second"
set logscale y
set yrange [0.1:100]
plot results."/breakdown.tsv" using 2:xtic(1) title "paper (ConnectX-5)" lc rgb "#888888", \
	"" using 3 title "model" lc rgb "#3366aa"

# Throughput beside latency: p50 and, dashed, p99.
reset
set terminal svg size 960,380 font "sans,11" background "white"
set datafile separator "\t"
set grid lc rgb "#dddddd"
set logscale xy
set format x "%g"
curve(w, file) = "< grep -P '^".w."\t' ".results."/".file.".tsv"

do for [file in "servers nodes wide entries"] {
	set output pictures."/paper-".file.".svg"
	what = file eq "servers" ? "compute servers (22 clients each), 8 memory nodes" : file eq "nodes" ? "memory nodes, 8 compute servers" : \
		file eq "wide" ? "memory nodes, 64 compute servers" : "entries, 8 memory nodes, 8 compute servers"
	if (file eq "entries") { set format x "10^{%T}" }
	set multiplot layout 1,2 title "Model: ".what
	set xlabel what
	set key bottom right
	set ylabel "million operations per second"
	set yrange [1:400]
	plot for [w in "read insert mixed"] curve(w, file) using 2:3 title w with linespoints pt 7
	set key top left
	set ylabel "latency, us: p50, p99 (dashed)"
	set yrange [1:10000]
	plot for [i=1:3] curve(word("read insert mixed", i), file) using 2:4 title word("read insert mixed", i) with linespoints lc i pt 7, \
		for [i=1:3] curve(word("read insert mixed", i), file) using 2:6 notitle with linespoints lc i pt 6 dt 2
	unset multiplot
}
