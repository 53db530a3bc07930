# Ratios to Redis from the lines of load.h: tcp by operations per second of the server's processor time and by operations
# per second; shm, which takes none of the server's time, by operations per second.
BEGIN {
	same["get64"] = "read64"
	same["get1k"] = "read1k"
	same["set16"] = "write16"
}

# peer operation clients x outstanding N/s N/core median 99% 99.9% us
{
	outstanding = $5
	load = $3 " x " outstanding
	if (!(load in seen))
	{
		seen[load] = 1
		order[++loads] = load
	}
	name = ($2 in same) ? same[$2] : $2
	rate[$1, name, load] = $6 + 0
	core[$1, name, load] = $7 + 0
}

function ratio(a, b)
{
	return b > 0 && a > 0 ? sprintf("%.2f", a / b) : "-"
}

END {
	printf "\n%-9s %-8s %18s %18s %18s %22s\n", "clients x", "", "tcp/Redis", "tcp/Redis", "shm/Redis", "memcached/Redis"
	printf "%-9s %-8s %18s %18s %18s %22s\n", "outst.", "", "per server core", "per second", "per second", "per server core"
	for (l = 1; l <= loads; l++)
		for (o = 1; o <= 3; o++)
		{
			name = o == 1 ? "read64" : o == 2 ? "read1k" : "write16"
			load = order[l]
			printf "%-9s %-8s %18s %18s %18s %22s\n", load, name,
				ratio(core["tcp", name, load], core["redis", name, load]),
				ratio(rate["tcp", name, load], rate["redis", name, load]),
				ratio(rate["shm", name, load], rate["redis", name, load]),
				ratio(core["memcached", name, load], core["redis", name, load])
		}
}
