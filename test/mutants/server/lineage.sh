# Safeguards of a tree's history. Sourced by script/test long mutations-server.

mutate nonce_not_compared t/035_lineage sherman_half_determine \
	's/else if \(!same_history\(meta, entry\)\)/else if (!same_history(meta, entry) \&\& meta->magic == 0)/'
mutate nonce_not_in_the_metapage t/035_lineage sherman_metapage_adopt \
	's/\t\tmeta.nonce_current = nonce;\n//'
mutate nonce_before_forgotten t/035_lineage sherman_metapage_adopt \
	's/meta.nonce_previous = previous;/meta.nonce_previous = 0 * previous;/'
mutate metapage_not_flushed t/035_lineage sherman_metapage_adopt \
	's/(end = metapage_write\(index, buffer, &meta\);\n\t\}\n\tif \()RelationNeedsWAL\(index\)/$1end == 0/'
mutate copy_is_fought_for t/036_copies sherman_recovery_check \
	's/if \(known && seen && status->epoch > local->epoch\)/if (seen \&\& !known \&\& status->epoch == 0)/'

# ---- the resource manager's number
mutate experimental_number_taken t/071_preload sherman_wal_end_install \
	's/: RM_MAX_CUSTOM_ID;/: RM_EXPERIMENTAL_ID;/; s/ && \(number != RM_EXPERIMENTAL_ID \|\| sherman_resource_manager_id != 0\);/;/'
mutate recovery_that_nobody_tells t/071_preload sherman_wal_end_start \
	's/recovery_tells \? SHERMAN_AWAITED_RECOVERY : SHERMAN_AWAITED_WAL/SHERMAN_AWAITED_RECOVERY/'
