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

reset
set datafile separator "\t"
set grid lc rgb "#dddddd"
set style data linespoints
set key bottom right
set ylabel "million operations per second"
set logscale xy
set yrange [1:200]
set format x "%g"
set output pictures."/paper-servers.svg"
set title "Model: compute servers (22 clients each), 8 memory nodes"
set xlabel "compute servers"
plot for [w in "read insert mixed"] "< grep -P '^".w."\t' ".results."/servers.tsv" using 2:3 title w pt 7
set output pictures."/paper-nodes.svg"
set title "Model: memory nodes, 8 x 22 clients"
set xlabel "memory nodes"
plot for [w in "read insert mixed"] "< grep -P '^".w."\t' ".results."/nodes.tsv" using 2:3 title w pt 7
set output pictures."/paper-entries.svg"
set title "Model: entries, 8 memory nodes, 8 x 22 clients"
set xlabel "entries"
set format x "10^{%T}"
plot for [w in "read insert mixed"] "< grep -P '^".w."\t' ".results."/entries.tsv" using 2:3 title w pt 7
