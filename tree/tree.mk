# The index itself, without PostgreSQL: linked into the extension, msd and the C tests.
TREE_SOURCES = \
	tree/access.c \
	tree/allocate.c \
	tree/back_off.c \
	tree/batch.c \
	tree/batch_whole.c \
	tree/blocks.c \
	tree/bulk.c \
	tree/cache.c \
	tree/check.c \
	tree/client.c \
	tree/copies.c \
	tree/copies_compare.c \
	tree/dead.c \
	tree/directory.c \
	tree/directory_copies.c \
	tree/estimate.c \
	tree/fold.c \
	tree/fold_walk.c \
	tree/freed.c \
	tree/gate.c \
	tree/heal.c \
	tree/insert.c \
	tree/insert_full.c \
	tree/interpolate.c \
	tree/leaf.c \
	tree/leaf_cache.c \
	tree/lock.c \
	tree/lock_leave.c \
	tree/lock_release.c \
	tree/lock_table.c \
	tree/node.c \
	tree/offload.c \
	tree/order.c \
	tree/parent.c \
	tree/posting.c \
	tree/predicate.c \
	tree/redo.c \
	tree/reread.c \
	tree/room.c \
	tree/salvage.c \
	tree/scan.c \
	tree/scan_take.c \
	tree/search.c \
	tree/service.c \
	tree/service_calls.c \
	tree/service_copies.c \
	tree/service_descend.c \
	tree/service_runs.c \
	tree/service_tables.c \
	tree/service_units.c \
	tree/shape.c \
	tree/shared.c \
	tree/speculate.c \
	tree/split.c \
	tree/state_table.c \
	tree/step.c \
	tree/throttle.c \
	tree/vacuum.c

# The daemon's own, beside all of the above.
MSD_SOURCES = \
	tree/msd.c \
	tree/msd_config.c \
	tree/msd_files.c \
	tree/msd_machine.c \
	tree/msd_metrics.c \
	tree/msd_notify.c \
	tree/msd_page.c \
	tree/msd_reload.c
