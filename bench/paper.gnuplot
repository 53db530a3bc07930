# The figures of script/bench paper. Variables: results (directory with the .tsv files), pictures (where the .svg files go).
set terminal svg size 640,360 font "sans,11" background "white"
set datafile separator "\t"
set grid ytics lc rgb "#dddddd"
set style fill solid 0.8 border -1

set output pictures."/paper-breakdown.svg"
set title "Write-intensive, Zipf 0.99, 8 x 22 clients: paper's figures and the model's"
set style data histogram
set style histogram clustered gap 1
set boxwidth 0.9
set ylabel "million operations per second"
set logscale y
set yrange [0.1:100]
plot results."/breakdown.tsv" using 2:xtic(1) title "paper (ConnectX-5)" lc rgb "#888888", \
	"" using 3 title "model" lc rgb "#3366aa"

set output pictures."/paper-ratios.svg"
set title "Model's figure / paper's figure"
set yrange [0.05:20]
set ylabel "ratio"
unset key
set xtics rotate by -60 font "sans,7"
set size 640,560
plot results."/ratios.tsv" using 4:xtic(1) lc rgb "#3366aa", 1.3 with lines lc rgb "#aa3333", 0.7 with lines lc rgb "#aa3333"

unset yrange
set style data linespoints
set xtics norotate font "sans,11"
set key top left
set ylabel "million operations per second"
set logscale xy
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
