# Safeguards around the place of a data directory. Sourced by script/test long mutations-server.

mutate moved_is_another t/060_place sherman_place_find \
	's/return SHERMAN_PLACE_MOVED;/return SHERMAN_PLACE_REPLICA;/'
mutate copy_takes_the_originals_memory t/060_place sherman_place_find \
	's/if \(original_is_there\(local\)\)/if (false \&\& original_is_there(local))/'
mutate copy_fences_the_original t/060_place sherman_recovery_check \
	's/known && sherman_shared->local\.moved && /false \&\& /' \
	become_copy \
	's/^static bool\nbecome_copy/static pg_attribute_unused() bool\nbecome_copy/m'
mutate next_epoch_not_drawn t/060_place next_epoch \
	's/\*next = last \+ 1 \+ step;/*next = last + 1;/'
