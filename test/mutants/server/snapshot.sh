# Safeguards of snapshots in a server. Sourced by script/test long mutations-server.

mutate age_of_memory_not_looked_at t/028_snapshot sherman_recovery_check \
	's/if \(known && \(status->epoch == local->epoch \|\| .*\)\)$/if (known)/m'
mutate snapshot_of_another_history_stays t/028_snapshot sherman_recovery_start \
	's/sherman_keep_file\(SHERMAN_SNAPSHOT, "unproven"\)/true/'
mutate anything_can_be_removed t/028_snapshot set_aside_remove \
	's/if \(!wanted\.found\)/if (!wanted.found \&\& kept[0] == 0)/'
mutate snapshot_not_wanted t/028_snapshot node_save \
	's/if \(sherman_embedded_snapshot\)/if (true)/'
mutate memory_node_beside_what_stays t/073_held sherman_node_main \
	's/if \(sherman_shared->node_held\)/if (false)/'
mutate what_stays_is_forgotten t/073_held sherman_recovery_start \
	's/local->foreign_snapshot = !sherman_keep_file/shared->node_held |= !sherman_keep_file/'
mutate foreign_state_file_written_over t/073_held sherman_local_write \
	's/\tif \(local_held\)\n\t\treturn false;\n//'
mutate why_it_does_not_serve_is_forgotten t/073_held node_exit \
	's/if \(!node_failed\)\n/if (true)\n/'
