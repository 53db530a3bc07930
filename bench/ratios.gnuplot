# Bars of sherman / btree; the line at 1 is btree. Variables: data (ratios.tsv), picture (PNG).
set terminal pngcairo size 2400,900
set output picture
set title "sherman / btree, one machine (lower is better)"
set style fill solid 0.8
set boxwidth 0.6
set logscale y 2
set ylabel "ratio"
set grid ytics
set xtics rotate by 60 right noenhanced
set key off
set lmargin 20
set tmargin 5
set arrow from graph 0, first 1 to graph 1, first 1 nohead lw 2
plot data using 0:2:xtic(1) with boxes, '' using 0:2:(sprintf("%.2f", $2)) with labels offset 0,0.7
