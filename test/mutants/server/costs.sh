# Safeguards of the planner's round trips. Sourced by script/test long mutations-server.

mutate costs_know_no_round_trips t/079_round_trips add_round_trips \
	's/\tif \(round_trip <= 0\)\n/\tif (true)\n/'
mutate cached_leaves_cost_round_trips t/079_round_trips share_not_cached \
	's/return bytes > 0 \? 1 - Min\(1, .*?\) : 0;/return 1;/'
mutate mapped_memory_costs_round_trips t/079_round_trips round_trip_cost \
	's/sherman_round_trip_cost >= 0 && measured_us > 0/sherman_round_trip_cost >= 0/'
mutate lookahead_shares_no_round_trips t/079_round_trips add_round_trips \
	's/\t\tfirst \/= LEAVES_FETCHED_TOGETHER;\n/\t\t;\n/'
mutate round_trips_not_measured t/079_round_trips measure_round_trip \
	's/pg_atomic_write_u32\(&node->round_trip_us, \(uint32\) least\);/pg_atomic_write_u32(\&node->round_trip_us, 0);/'
