# Safeguards of snapshots in a server. Sourced by script/test-mutations-server.

mutate age_of_memory_not_looked_at t/028_snapshot am/recovery.c \
	's/if \(known && \(status->epoch == local->epoch \|\| .*\)\)$/if (known)/m'
mutate snapshot_of_another_history_stays t/028_snapshot am/recovery.c \
	's/\t\tif \(unproven\)\n\t\t\tremove_snapshot\(\);\n/\t\t(void) remove_snapshot;\n/'
mutate snapshot_not_wanted t/028_snapshot am/workers.c \
	's/if \(sherman_embedded_snapshot\)/if (true)/'
