# Safeguards of taking over. Sourced by script/test-mutations-server.

mutate border_not_looked_for t/041_takeover am/wal_end.c \
	's/return look_into_wal\(read_from_end, from, end\);/return end;/'
mutate cut_not_minded t/041_takeover am/takeover.c \
	's/sherman_epoch_end\(local, local->cut,/sherman_epoch_end(local, PG_UINT64_MAX,/'
mutate page_not_written_behind_an_attach t/041_takeover am/recovery.c \
	's/(node->unclean_from = 0;\n\treturn )history_change/$1local_change/'
mutate undecided_is_broken t/041_takeover am/state.c \
	's/(sherman_shared->local.take_over != SHERMAN_TAKE_OVER_NOT)\)/($1 \&\& meta->magic == 0)/'
